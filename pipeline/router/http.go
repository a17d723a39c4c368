package router

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"misroute/tokenize"
	"misroute/tokenize/window"
)

// HTTPOptions of a deployed router.
type HTTPOptions struct {
	// Tokenizer is the deployed model's tokenizer.json. With it messages are cut here, at the cap that
	// is asked, and only what is kept is sent. Without it the whole text is sent, the server cuts as it
	// does in production, and lengths are counted in words.
	Tokenizer string
	// Queues names the model's queues in the order of its outputs, for servers that answer with bare
	// numbers. Empty: the labels of the answers, sorted.
	Queues  []string
	Timeout time.Duration // of one attempt; 0: 30 s
	Retries int           // after the first attempt; 0: 4, negative: none
	// Token is sent as a bearer token. It is never printed and never stored.
	Token  string
	Client *http.Client // nil: one of its own
}

// HTTP is a deployed router. It speaks two protocols, told apart by the path of the URL: the Open
// Inference Protocol v2 (".../v2/models/NAME/infer", BYTES in; labels as BYTES and scores as FP32
// out, or scores alone in the order of Queues), and the /predict shape of text-embeddings-inference
// ({"inputs": text} in; [{"label", "score"}] out) for every other path.
//
// Scores are taken for probabilities where they look like them (all in [0,1], sum 1), and for logits
// elsewhere.
type HTTP struct {
	url       *url.URL
	oip       bool
	o         HTTPOptions
	client    *http.Client
	tokenizer *tokenize.Tokenizer
	before    []int32
	after     []int32
	queues    []string
	index     map[string]int
	facts     Facts
}

const (
	httpTimeout = 30 * time.Second
	httpRetries = 4
	// The first pause before another attempt; each further one doubles, up to httpPauseMax, with jitter
	// so that the workers do not come back all at once.
	httpPause    = 250 * time.Millisecond
	httpPauseMax = 15 * time.Second
	// An answer is a few numbers a queue.
	httpAnswerMax = 4 << 20
)

// IsURL says whether a --model names a deployed router.
func IsURL(model string) bool {
	return strings.HasPrefix(model, "http://") || strings.HasPrefix(model, "https://")
}

// OpenHTTP asks the router at rawURL one question, to learn its queues and whether it is there.
func OpenHTTP(ctx context.Context, rawURL string, o HTTPOptions) (*HTTP, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("router %q: %w", rawURL, err)
	}
	if o.Timeout == 0 {
		o.Timeout = httpTimeout
	}
	if o.Retries == 0 {
		o.Retries = httpRetries
	}
	h := &HTTP{url: u, o: o, client: o.Client, oip: strings.HasSuffix(u.Path, "/infer")}
	if h.client == nil {
		h.client = &http.Client{}
	}
	shown := u.Redacted()
	h.facts = Facts{Name: u.Host + u.Path, Family: "http", Tokenizer: "words", Kernel: "remote", Precision: "remote"}
	if o.Tokenizer != "" {
		if h.tokenizer, err = tokenize.Load(o.Tokenizer); err != nil {
			return nil, fmt.Errorf("router %s: tokenizer: %w", shown, err)
		}
		h.before, h.after = h.tokenizer.Specials()
		h.facts.Tokenizer, h.facts.TokenizerSHA256 = h.tokenizer.Describe(), h.tokenizer.SHA256()
		h.facts.Warnings = h.tokenizer.Warnings()
	}
	labels, scores, err := h.ask(ctx, "a question to learn the queues")
	if err != nil {
		return nil, fmt.Errorf("router %s: %w", shown, err)
	}
	switch {
	case len(o.Queues) > 0 && len(o.Queues) != len(scores):
		return nil, fmt.Errorf("router %s: it answers with %d scores, %d queues were named", shown, len(scores), len(o.Queues))
	case len(o.Queues) > 0:
		h.queues = o.Queues
	case len(labels) == 0:
		return nil, fmt.Errorf("router %s: it answers with %d numbers and no labels: name the queues in their order", shown, len(scores))
	default:
		h.queues = slices.Sorted(slices.Values(labels)) // servers sort answers by score
	}
	h.index = map[string]int{}
	for i, q := range h.queues {
		h.index[q] = i
	}
	h.describe(ctx)
	return h, nil
}

// describe asks text-embeddings-inference who it is; a server that does not say is known by its
// address alone.
func (h *HTTP) describe(ctx context.Context) {
	sum := sha256.Sum256([]byte(h.url.Redacted()))
	h.facts.SHA256 = hex.EncodeToString(sum[:])
	if h.oip {
		return
	}
	info := *h.url
	info.Path = strings.TrimSuffix(info.Path, "/predict") + "/info"
	var who struct {
		ModelID  string `json:"model_id"`
		ModelSHA string `json:"model_sha"`
	}
	answer, _, err := h.once(ctx, http.MethodGet, info.String(), nil)
	if err == nil && json.Unmarshal(answer, &who) == nil && who.ModelID != "" {
		h.facts.Name = who.ModelID
		if who.ModelSHA != "" {
			h.facts.SHA256 = who.ModelSHA
		}
	}
}

// Facts implements Router.
func (h *HTTP) Facts() Facts { return h.facts }

// Queues implements Router.
func (h *HTTP) Queues() []string { return h.queues }

// NewSession implements Router.
func (h *HTTP) NewSession() Session {
	return &httpSession{h, windows{queues: len(h.queues), specials: len(h.before) + len(h.after), planner: h.planner}}
}

// Whole implements Router: everything is sent, and the server's own limit holds.
func (h *HTTP) Whole() (Setting, string) {
	return Setting{Strategy: window.KeepHead}, "the whole text sent; the server's own limit holds"
}

// Encode implements Router.
func (h *HTTP) Encode(dst *Encoded, text []byte) {
	dst.Text = text
	if h.tokenizer != nil {
		h.tokenizer.Encode(&dst.Encoding, text)
		return
	}
	dst.IDs, dst.TypeIDs, dst.Start, dst.End, dst.Special = dst.IDs[:0], dst.TypeIDs[:0], dst.Start[:0], dst.End[:0], dst.Special[:0]
	at := 0
	for field := range bytes.FieldsSeq(text) {
		from := at + bytes.Index(text[at:], field)
		at = from + len(field)
		dst.IDs, dst.TypeIDs, dst.Special = append(dst.IDs, 0), append(dst.TypeIDs, 0), append(dst.Special, false)
		dst.Start, dst.End = append(dst.Start, int32(from)), append(dst.End, int32(at))
	}
}

// Check implements Router.
func (h *HTTP) Check(s Setting) error {
	if h.tokenizer == nil && s.MaxTokens > 0 {
		return errors.New("the deployed router cuts messages itself: use --cap none, or give its --tokenizer so that they can be cut here")
	}
	_, err := h.planner(s)
	return err
}

func (h *HTTP) planner(s Setting) (*window.Planner, error) {
	return window.NewPlanner(h.before, h.after, window.Options{
		MaxTokens: s.MaxTokens, Strategy: s.Strategy, HeadTokens: s.HeadTokens, Overlap: s.Overlap, Aggregate: s.Aggregate,
	})
}

type httpSession struct {
	h *HTTP
	windows
}

// Read implements Session: each window's text is one request.
func (s *httpSession) Read(ctx context.Context, e *Encoded, set Setting, dst *Reading) error {
	return s.read(e, set, dst, func(logits []float32, w *window.Window) error {
		return s.h.logits(ctx, logits, textOf(e, w, s.plan.Truncated()))
	})
}

// textOf is the text of a window: the bytes from each run's first token to its last, runs joined by a
// space. An uncut message is sent as it is.
func textOf(e *Encoded, w *window.Window, cut bool) string {
	if !cut && len(w.IDs) == len(e.IDs) {
		return string(e.Text)
	}
	var b strings.Builder
	last := int32(-2)
	for _, at := range w.Positions {
		if at < 0 || e.Special[at] {
			continue
		}
		from := e.Start[at]
		if at == last+1 {
			from = e.End[last] // with what stands between two tokens
		} else if b.Len() > 0 {
			b.WriteByte(' ')
		}
		if from < e.End[at] {
			b.Write(e.Text[from:e.End[at]])
		}
		last = at
	}
	return b.String()
}

func (h *HTTP) logits(ctx context.Context, dst []float32, text string) error {
	labels, scores, err := h.ask(ctx, text)
	if err != nil {
		return err
	}
	if len(scores) != len(h.queues) {
		return fmt.Errorf("the router answered with %d scores, at first it had %d queues", len(scores), len(h.queues))
	}
	asLogits(scores)
	for i, v := range scores {
		at := i
		if len(labels) > 0 {
			var ok bool
			if at, ok = h.index[labels[i]]; !ok {
				return fmt.Errorf("the router answered with the queue %q, which it did not have at first", labels[i])
			}
		}
		dst[at] = float32(v)
	}
	return nil
}

// asLogits replaces probabilities by their logarithms, which softmax turns back into them.
func asLogits(scores []float64) {
	sum := 0.0
	for _, p := range scores {
		if p < 0 || p > 1 || math.IsNaN(p) {
			return
		}
		sum += p
	}
	if math.Abs(sum-1) > 1e-2 {
		return
	}
	for i, p := range scores {
		scores[i] = math.Log(max(p, 1e-30))
	}
}

// ask sends one text, again after a pause where trying again can help.
func (h *HTTP) ask(ctx context.Context, text string) (labels []string, scores []float64, err error) {
	body, err := h.question(text)
	if err != nil {
		return nil, nil, err
	}
	pause := httpPause
	for attempt := 0; ; attempt++ {
		answer, again, err := h.once(ctx, http.MethodPost, h.url.String(), body)
		if err == nil {
			return h.answer(answer)
		}
		if !again.again || attempt >= h.o.Retries || ctx.Err() != nil {
			if attempt > 0 {
				err = fmt.Errorf("%w (%d attempts)", err, attempt+1)
			}
			return nil, nil, err
		}
		wait := max(again.after, pause/2+time.Duration(rand.Int63n(int64(pause))))
		select {
		case <-time.After(min(wait, httpPauseMax)):
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
		pause = min(2*pause, httpPauseMax)
	}
}

// retry says whether another attempt can help, and when.
type retry struct {
	again bool
	after time.Duration
}

func (h *HTTP) once(ctx context.Context, method, target string, body []byte) ([]byte, retry, error) {
	ctx, cancel := context.WithTimeout(ctx, h.o.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return nil, retry{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	if h.o.Token != "" {
		req.Header.Set("Authorization", "Bearer "+h.o.Token)
	}
	resp, err := h.client.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // without the address: it may hold a password
		}
		return nil, retry{again: true}, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, httpAnswerMax+1))
	if err != nil {
		return nil, retry{again: true}, err
	}
	if len(answer) > httpAnswerMax {
		return nil, retry{}, fmt.Errorf("the answer is longer than %d bytes", httpAnswerMax)
	}
	if resp.StatusCode != http.StatusOK {
		r := retry{again: resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500}
		if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
			r.after = time.Duration(min(seconds, 3600)) * time.Second
		}
		return nil, r, fmt.Errorf("the router answered %s", resp.Status)
	}
	return answer, retry{}, nil
}

func (h *HTTP) question(text string) ([]byte, error) {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if h.oip {
		return json.Marshal(map[string]any{"inputs": []any{map[string]any{
			"name": "text", "shape": []int{1}, "datatype": "BYTES", "data": []string{text},
		}}})
	}
	// The cut is made here or by the server, in silence as in production; never by an error.
	return json.Marshal(map[string]any{"inputs": text, "truncate": true})
}

// answer reads the scores, and the labels where there are any.
func (h *HTTP) answer(b []byte) (labels []string, scores []float64, err error) {
	if h.oip {
		labels, scores, err = oipAnswer(b)
	} else {
		labels, scores, err = predictAnswer(b)
	}
	if err == nil && len(scores) == 0 {
		err = errors.New("the router's answer has no scores")
	}
	return labels, scores, err
}

type labelScore struct {
	Label *string  `json:"label"`
	Score *float64 `json:"score"`
}

// predictAnswer reads [{"label", "score"}], also as the one row of a batch.
func predictAnswer(b []byte) (labels []string, scores []float64, err error) {
	var list []labelScore
	if err := json.Unmarshal(b, &list); err != nil {
		var batch [][]labelScore
		if err := json.Unmarshal(b, &batch); err != nil || len(batch) != 1 {
			return nil, nil, errors.New(`the router's answer is no list of {"label", "score"}`)
		}
		list = batch[0]
	}
	for _, x := range list {
		if x.Label == nil || x.Score == nil {
			return nil, nil, errors.New(`the router's answer is no list of {"label", "score"}`)
		}
		labels, scores = append(labels, *x.Label), append(scores, *x.Score)
	}
	return labels, scores, nil
}

// oipAnswer reads the outputs of the Open Inference Protocol.
func oipAnswer(b []byte) (labels []string, scores []float64, err error) {
	var a struct {
		Outputs []struct {
			Name     string          `json:"name"`
			Datatype string          `json:"datatype"`
			Data     json.RawMessage `json:"data"`
		} `json:"outputs"`
	}
	if err := json.Unmarshal(b, &a); err != nil {
		return nil, nil, fmt.Errorf("the router's answer is no inference response: %w", err)
	}
	for _, out := range a.Outputs {
		switch out.Datatype {
		case "BYTES":
			err = json.Unmarshal(out.Data, &labels)
		case "FP16", "FP32", "FP64":
			err = json.Unmarshal(out.Data, &scores)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("the router's output %q: %w", out.Name, err)
		}
	}
	if len(labels) > 0 && len(labels) != len(scores) {
		return nil, nil, fmt.Errorf("the router's answer has %d labels and %d scores", len(labels), len(scores))
	}
	return labels, scores, nil
}

package router

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"misroute/tokenize/window"
)

// predictServer speaks /predict: "refund" in the text makes refunds likely. Answers are sorted by
// score, as the real server sorts them.
func predictServer(t *testing.T, seen *[]string) *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /predict", func(w http.ResponseWriter, r *http.Request) {
		var q struct{ Inputs string }
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			t.Error(err)
		}
		if seen != nil {
			*seen = append(*seen, q.Inputs)
		}
		if strings.Contains(q.Inputs, "refund") {
			io.WriteString(w, `[{"label":"refunds","score":0.8},{"label":"feedback","score":0.2}]`)
		} else {
			io.WriteString(w, `[[{"label":"feedback","score":0.9},{"label":"refunds","score":0.1}]]`)
		}
	})
	mux.HandleFunc("GET /info", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"model_id":"shop/router","model_sha":"abc123"}`)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func read(t *testing.T, r Router, text string, s Setting) Reading {
	t.Helper()
	var e Encoded
	r.Encode(&e, []byte(text))
	var out Reading
	if err := r.NewSession().Read(context.Background(), &e, s, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestHTTPPredict(t *testing.T) {
	var seen []string
	srv := predictServer(t, &seen)
	r, err := OpenHTTP(context.Background(), srv.URL+"/predict", HTTPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if f := r.Facts(); f.Name != "shop/router" || f.SHA256 != "abc123" {
		t.Errorf("facts %+v, want the name and digest of /info", f)
	}
	if !slices.Equal(r.Queues(), []string{"feedback", "refunds"}) {
		t.Errorf("queues %v", r.Queues())
	}
	got := read(t, r, "a refund, please", Setting{})
	scores := make([]float32, 2)
	got.Softmax(scores)
	if math.Abs(float64(scores[1])-0.8) > 1e-6 || got.TokensKept != 3 {
		t.Errorf("scores %v of %d words, want 0.8 for refunds of 3 words", scores, got.TokensKept)
	}
	if seen[len(seen)-1] != "a refund, please" {
		t.Errorf("sent %q, want the text as it is", seen[len(seen)-1])
	}
	if err := r.Check(Setting{MaxTokens: 256}); err == nil || !strings.Contains(err.Error(), "--tokenizer") {
		t.Errorf("a cap without a tokenizer: %v", err)
	}
}

func TestHTTPOpenInferenceProtocol(t *testing.T) {
	labels := true
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Inputs []struct {
				Datatype string
				Shape    []int
				Data     []string
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil || len(q.Inputs) != 1 || q.Inputs[0].Datatype != "BYTES" || len(q.Inputs[0].Data) != 1 {
			t.Errorf("question %+v, %v", q, err)
		}
		out := `{"model_name":"r","outputs":[{"name":"scores","datatype":"FP32","shape":[1,2],"data":[-1.5,2.5]}`
		if labels {
			out += `,{"name":"labels","datatype":"BYTES","shape":[1,2],"data":["refunds","feedback"]}`
		}
		io.WriteString(w, out+"]}")
	}))
	defer srv.Close()
	r, err := OpenHTTP(context.Background(), srv.URL+"/v2/models/r/infer", HTTPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// Logits stay as they are; the labels say whose they are.
	if got := read(t, r, "x", Setting{}); !slices.Equal(r.Queues(), []string{"feedback", "refunds"}) || !slices.Equal(got.Logits, []float32{2.5, -1.5}) {
		t.Errorf("queues %v, logits %v", r.Queues(), got.Logits)
	}
	labels = false
	if _, err := OpenHTTP(context.Background(), srv.URL+"/v2/models/r/infer", HTTPOptions{}); err == nil || !strings.Contains(err.Error(), "name the queues") {
		t.Errorf("no labels: %v", err)
	}
	r, err = OpenHTTP(context.Background(), srv.URL+"/v2/models/r/infer", HTTPOptions{Queues: []string{"a", "b"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, r, "x", Setting{}); !slices.Equal(got.Logits, []float32{-1.5, 2.5}) {
		t.Errorf("logits %v, want them in the order of the named queues", got.Logits)
	}
}

// A busy server is asked again after a pause, a wrong question is not.
func TestHTTPRetries(t *testing.T) {
	var asked atomic.Int64
	status := http.StatusServiceUnavailable
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := asked.Add(1); n <= 2 {
			w.WriteHeader(status)
			return
		}
		io.WriteString(w, `[{"label":"a","score":1}]`)
	}))
	defer srv.Close()
	if _, err := OpenHTTP(context.Background(), srv.URL+"/predict", HTTPOptions{}); err != nil || asked.Load() < 3 {
		t.Errorf("after two 503: %v, asked %d times; want an answer at the third", err, asked.Load())
	}
	asked.Store(0)
	if _, err := OpenHTTP(context.Background(), srv.URL+"/predict", HTTPOptions{Retries: 1}); err == nil || !strings.Contains(err.Error(), "503") || !strings.Contains(err.Error(), "2 attempts") {
		t.Errorf("one retry: %v, want the status and the attempts", err)
	}
	asked.Store(0)
	status = http.StatusUnprocessableEntity
	if _, err := OpenHTTP(context.Background(), srv.URL+"/predict", HTTPOptions{}); err == nil || asked.Load() != 1 {
		t.Errorf("422: %v, asked %d times; want one", err, asked.Load())
	}
}

func TestHTTPAnswersThatAreNone(t *testing.T) {
	for _, body := range []string{"", "null", "[]", "{}", `"x"`, `[{"label":"a"}]`, `[{"score":1}]`, `[[],[]]`, `{"error":"overloaded"}`, strings.Repeat("[", 1000)} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, body) }))
		for _, path := range []string{"/predict", "/v2/models/r/infer"} {
			if r, err := OpenHTTP(context.Background(), srv.URL+path, HTTPOptions{}); err == nil {
				t.Errorf("%s answers %.20q: taken for a router with queues %v", path, body, r.Queues())
			}
		}
		srv.Close()
	}
}

func TestHTTPTimeoutAndSecrets(t *testing.T) {
	stop := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-stop }))
	defer srv.Close()
	defer close(stop)
	address := strings.Replace(srv.URL, "http://", "http://user:hunter2@", 1)
	_, err := OpenHTTP(context.Background(), address+"/predict", HTTPOptions{Timeout: 20 * time.Millisecond, Retries: -1, Token: "s3cret"})
	if err == nil || !strings.Contains(err.Error(), "deadline") {
		t.Fatalf("a server that never answers: %v", err)
	}
	if s := err.Error(); strings.Contains(s, "hunter2") || strings.Contains(s, "s3cret") {
		t.Errorf("the error tells a secret: %s", s)
	}
}

// With words for tokens, a cut sends the bytes of what is kept, and runs are joined by a space.
func TestTextOf(t *testing.T) {
	h := &HTTP{}
	var e Encoded
	h.Encode(&e, []byte("one  two, three\nfour five"))
	for _, c := range []struct {
		strategy window.Strategy
		max      int
		want     string
	}{
		{window.KeepHead, 3, "one  two, three"},
		{window.KeepTail, 2, "four five"},
		{window.KeepHeadTail, 4, "one three\nfour five"},
		{window.KeepHead, 9, "one  two, three\nfour five"},
	} {
		p, err := h.planner(Setting{MaxTokens: c.max, Strategy: c.strategy})
		if err != nil {
			t.Fatal(err)
		}
		var plan window.Plan
		if err := p.Plan(&plan, &e.Encoding); err != nil {
			t.Fatal(err)
		}
		if got := textOf(&e, &plan.Windows[0], plan.Truncated()); got != c.want {
			t.Errorf("%v %d: %q, want %q", c.strategy, c.max, got, c.want)
		}
	}
}

func ExampleIsURL() {
	fmt.Println(IsURL("https://router.example/predict"), IsURL("models/router"))
	// Output: true false
}

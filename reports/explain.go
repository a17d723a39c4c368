package reports

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"unicode"
	"unicode/utf8"

	"misroute/pipeline/result"
	"misroute/reports/table"
)

// Examined is one message as one router read it: positions, logits and, where the router shows its
// inside, attention weights or shares. [NewExplain] makes the report of it.
//
// Token positions count in the message's whole encoding with specials, byte positions in Text.
type Examined struct {
	MessageID, Source, Member string
	RecordNo                  int64
	Week, Language            string
	Label, Routed             string // empty: unknown

	RunID             string // empty: no run
	Router            result.ModelFacts
	Kernel, Precision string
	Queues            []string // of the router, in the order of the logits
	Cap               int      // 0: none
	Strategy, Quotes  string
	Subject           bool
	Reference         string // how whole messages are read

	Text      []byte
	Tokens    []TokenAt
	Zones     []ZoneAt // in order, without gaps
	Kept      []result.Range
	AtCap     []float32   // logits
	Whole     []float32   // logits
	Windows   []ReadPart  // the whole message, one stretch after the other, each read alone
	Caps      []ReadPart  // rising caps: To is the cap
	Sentences []LeftOut   // in the order of the text
	Attention *WeightMaps // nil: the router has none
	Shares    *TokenShares
	Warnings  []string
}

// TokenAt is one token: its bytes in the text, and its piece for those that stand for none.
type TokenAt struct {
	Start, End int
	Special    bool
	Piece      string
}

// ZoneAt is a stretch of bytes of one zone: subject, own, quoted, signature.
type ZoneAt struct {
	From, To int
	Zone     string
}

// ReadPart is the reading of a part of the message.
type ReadPart struct {
	From, To int // tokens
	Kept     int // tokens that were read, specials included
	Logits   []float32
}

// LeftOut is a sentence, and what its removal from the whole reading costs the target's margin.
type LeftOut struct {
	FromToken, ToToken int
	FromByte, ToByte   int
	Drop               float32
}

// WeightMaps are the attention weights of one pass.
type WeightMaps struct {
	Positions []int         // of each token of the pass
	Weights   [][][]float32 // [layer][head] T x T: row i holds what token i looked at
	Layer     int           // 1 is the first; 0: the last one
	Head      int           // 1 is the first; 0: the mean over heads, and the most focused head
}

// TokenShares are what each token adds to each queue's logit, for a router that is a sum.
type TokenShares struct {
	Positions []int
	Shares    []float32 // T x queues
	Bias      []float32 // of the queues
}

// Target of an examined message: its label where the router knows that queue, else the queue that the
// whole reading chooses. Sentences are judged by what they are worth to it.
func (e *Examined) Target() (queue int, isLabel bool) {
	if i := slices.Index(e.Queues, e.Label); e.Label != "" && i >= 0 {
		return i, true
	}
	best, _ := bestTwo(e.Whole)
	return best, false
}

// Explain is the report on one message.
type Explain struct {
	SchemaVersion int             `json:"schema_version"`
	Kind          string          `json:"kind"`
	Headline      string          `json:"headline"`
	Findings      []string        `json:"findings"`
	Doubt         []string        `json:"doubt"`
	Message       ExplainMessage  `json:"message"`
	Tokens        ExplainTokens   `json:"tokens"`
	Target        string          `json:"target"`
	TargetIsLabel bool            `json:"target_is_label"`
	AtCap         Scoring         `json:"at_cap"`
	Whole         Scoring         `json:"whole"`
	Windows       []PartScore     `json:"windows"`
	Depth         DecisionDepth   `json:"decision_depth"`
	Sentences     []SentenceDrop  `json:"sentences"`
	Decisive      *int            `json:"decisive"` // index of Sentences; null: none
	Attention     *AttentionFacts `json:"attention"`
	Words         *WordShares     `json:"word_shares"`
	Text          string          `json:"text,omitempty"` // only with text

	e        *Examined
	o        Options
	lead     string
	rest     string
	fine     bool
	lost     []result.Range
	passages []passage
}

// ExplainMessage names the message.
type ExplainMessage struct {
	ID       string `json:"message_id"`
	Source   string `json:"source"`
	Member   string `json:"member,omitempty"`
	RecordNo int64  `json:"record_no"`
	Week     string `json:"week,omitempty"`
	Language string `json:"language,omitempty"`
	Label    string `json:"label,omitempty"`
	Routed   string `json:"routed,omitempty"`
	RunID    string `json:"run_id,omitempty"`
	Model    string `json:"model"`
	SHA256   string `json:"model_sha256"`
}

// ExplainTokens says what was read.
type ExplainTokens struct {
	Total    int            `json:"total"`
	Kept     int            `json:"kept"`
	Cap      int            `json:"cap"` // 0: none
	Strategy string         `json:"strategy"`
	Read     []result.Range `json:"read"`
	Lost     []result.Range `json:"lost"`
	Zones    []ZoneTokens   `json:"zones"`
}

// ZoneTokens counts the tokens of a zone; specials belong to none.
type ZoneTokens struct {
	Zone   string `json:"zone"`
	From   int    `json:"from"`
	To     int    `json:"to"`
	Tokens int    `json:"tokens"`
	Lost   int    `json:"lost"`
}

// Scoring is one reading's outcome.
type Scoring struct {
	Prediction   string   `json:"prediction"`
	Score        Number   `json:"score"`
	TargetScore  Number   `json:"target_score"`
	TargetMargin Number   `json:"target_margin"` // logit of the target minus the best other
	Scores       []Number `json:"scores"`        // of the queues, in the router's order
}

// PartScore is the outcome of a window.
type PartScore struct {
	From int `json:"from"`
	To   int `json:"to"`
	Scoring
}

// CapScore is the outcome at a cap.
type CapScore struct {
	Cap  int  `json:"cap"` // 0: whole
	Kept int  `json:"kept"`
	Hit  bool `json:"right"` // the prediction is the target
	Scoring
}

// DecisionDepth says from which cap on the prediction is the target.
type DecisionDepth struct {
	Caps []CapScore `json:"caps"` // rising, the whole last
	// From is the smallest tested cap from which the prediction is right and stays right; 0: right
	// only when read whole. Undefined without Reached.
	From    int  `json:"from"`
	Reached bool `json:"reached"`
	// Again is the largest tested cap at which it was right before it was wrong again: right at 128,
	// wrong at 256. 0: none.
	Again int `json:"right_before,omitempty"`
}

// SentenceDrop is what a sentence is worth.
type SentenceDrop struct {
	From   int    `json:"from"` // tokens
	To     int    `json:"to"`
	Zone   string `json:"zone"`
	Read   string `json:"read"` // yes, no, partly
	Drop   Number `json:"drop"` // of the target's margin without it
	Offset *int   `json:"offset_from_cap"`
	Text   string `json:"text,omitempty"`

	fromByte, toByte int
}

var errNothingExamined = errors.New("explain: a message without tokens, queues or readings")

// NewExplain works out everything that the report says about a message.
func NewExplain(e *Examined, o Options) (*Explain, error) {
	if len(e.Tokens) == 0 || len(e.Queues) == 0 || len(e.AtCap) != len(e.Queues) || len(e.Whole) != len(e.Queues) {
		return nil, errNothingExamined
	}
	x := &Explain{SchemaVersion: SchemaVersion, Kind: "explain", e: e, o: o.defaults()}
	target, isLabel := e.Target()
	x.Target, x.TargetIsLabel = e.Queues[target], isLabel
	x.Message = ExplainMessage{
		ID: e.MessageID, Source: e.Source, Member: e.Member, RecordNo: e.RecordNo, Week: e.Week, Language: e.Language,
		Label: e.Label, Routed: e.Routed, RunID: e.RunID, Model: e.Router.Name, SHA256: e.Router.SHA256,
	}
	x.lost = lostRanges(e)
	x.countTokens()
	x.AtCap, x.Whole = e.scoring(e.AtCap, target), e.scoring(e.Whole, target)
	for _, w := range e.Windows {
		x.Windows = append(x.Windows, PartScore{w.From, w.To, e.scoring(w.Logits, target)})
	}
	x.depth(target)
	x.sentences()
	if err := x.attention(); err != nil {
		return nil, err
	}
	if err := x.shares(); err != nil {
		return nil, err
	}
	x.passages = x.passagesOf()
	if o.WithText {
		x.Text = string(e.Text)
	}
	x.say()
	return x, nil
}

func bestTwo(logits []float32) (best, second int) {
	best, second = 0, -1
	for i := 1; i < len(logits); i++ {
		switch {
		case logits[i] > logits[best]:
			best, second = i, best
		case second < 0 || logits[i] > logits[second]:
			second = i
		}
	}
	return best, second
}

// scoring turns logits into what they mean.
func (e *Examined) scoring(logits []float32, target int) Scoring {
	best, second := bestTwo(logits)
	sum := 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v) - float64(logits[best]))
	}
	s := Scoring{Prediction: e.Queues[best], Score: Number(1 / sum), TargetMargin: undefined, Scores: make([]Number, len(logits))}
	for i, v := range logits {
		s.Scores[i] = Number(math.Exp(float64(v)-float64(logits[best])) / sum)
	}
	s.TargetScore = s.Scores[target]
	other := best
	if best == target {
		other = second
	}
	if other >= 0 {
		s.TargetMargin = Number(float64(logits[target]) - float64(logits[other]))
	}
	return s
}

// lostRanges are the text tokens that were not read: all between the specials that no kept range has.
func lostRanges(e *Examined) []result.Range {
	var lost []result.Range
	at := 0
	kept := slices.Clone(e.Kept)
	kept = append(kept, result.Range{From: int32(len(e.Tokens)), To: int32(len(e.Tokens))})
	for _, k := range kept {
		from, to := at, int(k.From)
		for from < to && e.Tokens[from].Special {
			from++
		}
		for to > from && e.Tokens[to-1].Special {
			to--
		}
		if from < to {
			lost = append(lost, result.Range{From: int32(from), To: int32(to)})
		}
		at = max(at, int(k.To))
	}
	return lost
}

// isLost says whether a token was not read.
func (x *Explain) isLost(token int) bool {
	for _, r := range x.lost {
		if token >= int(r.From) && token < int(r.To) {
			return true
		}
	}
	return false
}

func (x *Explain) countTokens() {
	e := x.e
	t := &x.Tokens
	*t = ExplainTokens{Total: len(e.Tokens), Kept: len(e.Tokens), Cap: e.Cap, Strategy: e.Strategy, Read: e.Kept, Lost: x.lost}
	for _, r := range x.lost {
		t.Kept -= int(r.To - r.From)
	}
	for _, z := range e.Zones {
		c := ZoneTokens{Zone: z.Zone, From: -1}
		for i, tok := range e.Tokens {
			if tok.Special || tok.Start < z.From || tok.Start >= z.To {
				continue
			}
			if c.From < 0 {
				c.From = i
			}
			c.To = i + 1
			c.Tokens++
			if x.isLost(i) {
				c.Lost++
			}
		}
		if c.Tokens > 0 {
			t.Zones = append(t.Zones, c)
		}
	}
}

// zoneOf names the zone of a byte.
func (e *Examined) zoneOf(at int) string {
	for _, z := range e.Zones {
		if at >= z.From && at < z.To {
			return z.Zone
		}
	}
	return "own"
}

func (x *Explain) depth(target int) {
	e := x.e
	d := &x.Depth
	for _, c := range e.Caps {
		s := e.scoring(c.Logits, target)
		d.Caps = append(d.Caps, CapScore{Cap: c.To, Kept: c.Kept, Hit: s.Prediction == x.Target, Scoring: s})
	}
	d.Caps = append(d.Caps, CapScore{Cap: 0, Kept: len(e.Tokens), Hit: x.Whole.Prediction == x.Target, Scoring: x.Whole})
	first := len(d.Caps)
	for first > 0 && d.Caps[first-1].Hit {
		first--
	}
	if d.Reached = first < len(d.Caps); d.Reached {
		d.From = d.Caps[first].Cap
	}
	for _, c := range d.Caps[:first] {
		if c.Hit {
			d.Again = c.Cap
		}
	}
}

func (x *Explain) sentences() {
	e := x.e
	best := -1
	for i, s := range e.Sentences {
		lost := 0
		for t := s.FromToken; t < s.ToToken; t++ {
			if x.isLost(t) {
				lost++
			}
		}
		d := SentenceDrop{From: s.FromToken, To: s.ToToken, Zone: e.zoneOf(s.FromByte), Read: "yes", Drop: Number(s.Drop), fromByte: s.FromByte, toByte: s.ToByte}
		switch {
		case lost > 0 && lost == s.ToToken-s.FromToken:
			d.Read = "no"
		case lost > 0:
			d.Read = "partly"
		}
		if e.Cap > 0 {
			offset := s.FromToken - e.Cap
			d.Offset = &offset
		}
		if x.o.WithText {
			d.Text = string(bytes.ToValidUTF8(e.Text[s.FromByte:s.ToByte], []byte("\uFFFD")))
		}
		x.Sentences = append(x.Sentences, d)
		if s.Drop > 0 && (best < 0 || s.Drop > e.Sentences[best].Drop) {
			best = i
		}
	}
	if best >= 0 {
		x.Decisive = &best
	}
}

// decisive is the sentence that decides, nil where there is none.
func (x *Explain) decisive() *SentenceDrop {
	if x.Decisive == nil {
		return nil
	}
	return &x.Sentences[*x.Decisive]
}

// passage is a stretch of the text that is drawn in one way.
type passage struct {
	from, to int // bytes
	zone     string
	lost     bool
	decisive bool
	tokens   int
}

// passagesOf cuts the text where reading, zone or the deciding sentence change.
func (x *Explain) passagesOf() []passage {
	e := x.e
	marks := map[int]bool{0: true, len(e.Text): true}
	type span struct{ from, to int }
	var lost []span
	for _, r := range x.lost {
		s := span{e.Tokens[r.From].Start, e.Tokens[r.To-1].End}
		lost = append(lost, s)
		marks[s.from], marks[s.to] = true, true
	}
	for _, z := range e.Zones {
		marks[z.From], marks[z.To] = true, true
	}
	d := x.decisive()
	if d != nil {
		marks[d.fromByte], marks[d.toByte] = true, true
	}
	at := sortedKeys(marks)
	var list []passage
	for i := 0; i+1 < len(at); i++ {
		p := passage{from: at[i], to: at[i+1], zone: e.zoneOf(at[i])}
		for _, s := range lost {
			p.lost = p.lost || p.from >= s.from && p.from < s.to
		}
		p.decisive = d != nil && p.from >= d.fromByte && p.from < d.toByte
		p.tokens = e.tokensIn(p.from, p.to)
		blank := len(bytes.TrimSpace(e.Text[p.from:p.to])) == 0
		if n := len(list); blank && n > 0 { // white space belongs to what stands before it
			list[n-1].to = p.to
			continue
		}
		list = append(list, p)
	}
	return list
}

// tokensIn counts the tokens that start within a range of bytes.
func (e *Examined) tokensIn(from, to int) int {
	n := 0
	for _, t := range e.Tokens {
		if !t.Special && t.Start >= from && t.Start < to {
			n++
		}
	}
	return n
}

// wordAt is a word of a pass: a run of its tokens.
type wordAt struct{ from, to int } // indices of the pass

// wordsOf groups a pass's tokens into words: neighbours that stand together in the text with a letter
// or a digit on both sides of the seam. Scripts without spaces stay in single tokens.
func (e *Examined) wordsOf(positions []int) []wordAt {
	var words []wordAt
	for i, p := range positions {
		if i > 0 && p == positions[i-1]+1 && e.joins(p) {
			words[len(words)-1].to = i + 1
			continue
		}
		words = append(words, wordAt{i, i + 1})
	}
	return words
}

// joins says whether token p goes on with the word of the one before it.
func (e *Examined) joins(p int) bool {
	a, b := e.Tokens[p-1], e.Tokens[p]
	if a.Special || b.Special || a.End > b.Start || b.Start >= b.End || a.Start >= a.End {
		return !a.Special && !b.Special && a.Start == b.Start && b.Start < b.End // parts of one character
	}
	if a.End != b.Start {
		return false
	}
	left, _ := utf8.DecodeLastRune(e.Text[:b.Start])
	right, _ := utf8.DecodeRune(e.Text[b.Start:])
	return wordRune(left) && wordRune(right)
}

func wordRune(r rune) bool {
	if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) {
		return false
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
}

// wordText is a word as it stands in the text, or the piece of a special token.
func (e *Examined) wordText(positions []int, w wordAt) string {
	first, last := e.Tokens[positions[w.from]], e.Tokens[positions[w.to-1]]
	if first.Special {
		return first.Piece
	}
	s := bytes.TrimSpace(e.Text[first.Start:max(first.Start, last.End)])
	if len(s) == 0 {
		return first.Piece
	}
	return table.Clean(string(s))
}

// wordLabel is what a picture calls a word: itself, or its position where text is not to be shown.
func (x *Explain) wordLabel(positions []int, w wordAt, text bool) string {
	if text || x.e.Tokens[positions[w.from]].Special {
		return table.Fit(x.e.wordText(positions, w), 10)
	}
	return "#" + count(positions[w.from])
}

// WordShares takes the difference of two queues' logits apart by word.
type WordShares struct {
	For     string      `json:"for"`
	Against string      `json:"against"`
	Sum     Number      `json:"sum"`  // the difference of the logits
	Bias    Number      `json:"bias"` // the part that every message starts with
	Words   []WordShare `json:"words"`
}

// WordShare is one word's part.
type WordShare struct {
	From  int    `json:"from"` // tokens
	To    int    `json:"to"`
	Share Number `json:"share"`
	Text  string `json:"text,omitempty"`

	word string
}

// shares lists the words by what they said for the prediction against the label, or against the
// second best queue where the prediction is right or the label unknown.
func (x *Explain) shares() error {
	s := x.e.Shares
	if s == nil {
		return nil
	}
	q := len(x.e.Queues)
	if len(s.Shares) != len(s.Positions)*q || len(s.Bias) != q {
		return fmt.Errorf("explain: %d shares for %d tokens and %d queues", len(s.Shares), len(s.Positions), q)
	}
	best, second := bestTwo(x.e.AtCap)
	against := second
	if x.TargetIsLabel && x.Target != x.e.Queues[best] {
		against = slices.Index(x.e.Queues, x.Target)
	}
	if against < 0 {
		return nil
	}
	w := &WordShares{For: x.e.Queues[best], Against: x.e.Queues[against], Bias: Number(s.Bias[best] - s.Bias[against])}
	w.Sum = w.Bias
	for _, word := range x.e.wordsOf(s.Positions) {
		sum := 0.0
		for t := word.from; t < word.to; t++ {
			sum += float64(s.Shares[t*q+best]) - float64(s.Shares[t*q+against])
		}
		w.Sum += Number(sum)
		if sum == 0 {
			continue
		}
		from := s.Positions[word.from]
		share := WordShare{From: from, To: s.Positions[word.to-1] + 1, Share: Number(sum), word: x.e.wordText(s.Positions, word)}
		if x.o.WithText {
			share.Text = share.word
		}
		w.Words = append(w.Words, share)
	}
	sort.SliceStable(w.Words, func(i, j int) bool {
		return math.Abs(float64(w.Words[i].Share)) > math.Abs(float64(w.Words[j].Share))
	})
	x.Words = w
	return nil
}

// JSON writes the report's numbers; text only under --with-text.
func (x *Explain) JSON(out io.Writer) error { return writeJSON(out, x) }

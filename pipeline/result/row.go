// Package result holds what one run of the evaluation leaves behind: a [Row] a message, a [Reading]
// for every other way a cut message was read, a [Reject] for every record that could not be
// evaluated, and the [Run] facts that say how. It is the only contract between the evaluation and
// the reports: a report can be made again from a run folder alone, without the mail and the model.
//
// The package stores numbers and has no opinion about them: no metrics, no statistics.
package result

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
)

// SchemaVersion is the version of the row layout, written into every file. A reader refuses a
// newer one and says so.
const SchemaVersion = 1

// Status of a row: what became of the record.
const (
	StatusScored    = "scored"    // read, tokenized, routed
	StatusSalvaged  = "salvaged"  // scored, but only the raw body could be read
	StatusDuplicate = "duplicate" // same content and Message-ID as an earlier row: not scored
	StatusFiltered  = "filtered"  // deleted in the mail program, or excluded by an option: not scored
)

// Row is one message's recorded result at the run's own cap and strategy.
//
// Token positions count in the message's whole encoding with specials, so that position p stands
// past a cap c exactly when p >= c under the head strategy.
type Row struct {
	RunID    string `parquet:"run_id,dict"`
	Source   string `parquet:"source,dict"` // base name of the export, never a path of the machine
	Member   string `parquet:"member,dict"` // path inside a folder or an archive
	RecordNo int64  `parquet:"record_no,delta"`
	// Byte range of the message in the uncompressed source (or member).
	ByteOffset int64 `parquet:"byte_offset,delta"`
	ByteLength int64 `parquet:"byte_length"`

	MessageID     string `parquet:"message_id"`
	ContentSHA256 string `parquet:"content_sha256"` // hex, of the normalised content
	ThreadKey     string `parquet:"thread_key"`     // thread root, or hash of the normalised body
	Week          string `parquet:"week,dict"`      // ISO week of Date, "2026-W47"; empty without a date
	// Date is nil when the message has no usable date: never now, never 1970.
	Date *time.Time `parquet:"date,optional,timestamp(millisecond)"`

	Label       string `parquet:"label,dict"`        // the true queue; empty: unlabelled
	LabelSource string `parquet:"label_source,dict"` // file, header, gmail, column, folder
	Routed      string `parquet:"routed,dict"`       // the deployed router's queue, where the export knows it

	Prediction string       `parquet:"prediction,dict"`
	Score      float32      `parquet:"score"`  // softmax probability of the prediction
	Margin     float32      `parquet:"margin"` // logit of the best queue minus the second best
	Scores     []QueueScore `parquet:"scores,list"`

	TokensTotal int32   `parquet:"tokens_total"` // of the whole message, specials included
	TokensKept  int32   `parquet:"tokens_kept"`  // that a model read at least once, one set of specials included
	Kept        []Range `parquet:"kept,list"`    // token ranges that were read
	Cap         int32   `parquet:"cap"`          // in tokens; 0: the whole message
	Strategy    string  `parquet:"strategy,dict"`
	Windows     int32   `parquet:"windows"`
	Cells       int64   `parquet:"cells"` // entries of the score grids, over layers and heads
	FLOPs       int64   `parquet:"flops"`

	TextChars         int32    `parquet:"text_chars"` // code points given to the tokenizer
	QuoteCharsDropped int32    `parquet:"quote_chars_dropped"`
	SubjectTokens     int32    `parquet:"subject_tokens"` // tokens of the prepended subject
	Language          string   `parquet:"language,dict"`  // best guess, empty when unsure
	Warnings          []string `parquet:"warnings,list"`  // codes of package mail
	Status            string   `parquet:"status,dict"`
	DuplicateOf       int64    `parquet:"duplicate_of"` // record_no of the first copy; 0: none

	// Only under --with-text, empty otherwise.
	Subject string `parquet:"subject"`
	Text    string `parquet:"text"`
}

// QueueScore is the softmax probability of one queue.
type QueueScore struct {
	Queue string  `parquet:"queue,dict"`
	Score float32 `parquet:"score"`
}

// Range is a half-open range [From, To).
type Range struct {
	From int32 `parquet:"from"`
	To   int32 `parquet:"to"`
}

// TextBytes is the size of what the row stores of the message's text.
func (r *Row) TextBytes() int64 { return int64(len(r.Subject) + len(r.Text)) }

// Place says where a record stands in a run.
type Place struct {
	Source, Member string
	RecordNo       int64
}

// Place of the row's record.
func (r *Row) Place() Place { return Place{r.Source, r.Member, r.RecordNo} }

// Place of the rejected record.
func (r *Reject) Place() Place { return Place{r.Source, r.Member, r.RecordNo} }

// Place of the record that was read.
func (r *Reading) Place() Place { return Place{r.Source, r.Member, r.RecordNo} }

// Cut says whether tokens of the message were not read.
func (r *Row) Cut() bool { return r.TokensKept < r.TokensTotal }

// Scored says whether the row has a prediction.
func (r *Row) Scored() bool { return r.Status == StatusScored || r.Status == StatusSalvaged }

// Wrong says whether the row is a misroute: scored, labelled, and sent elsewhere.
func (r *Row) Wrong() bool { return r.Scored() && r.Label != "" && r.Prediction != r.Label }

// Kind of a reading.
const (
	ReadWhole   = "whole"   // the reference: the whole message, by windows where positions end
	ReadSetting = "setting" // another cap or strategy of a sweep
	ReadPlacebo = "placebo" // as many tokens dropped as the cut dropped, at random spans
	ReadControl = "control" // an uncut message read whole once more: must not differ from the row
)

// Reading is the same message read another way. Only messages that the setting would cut are read
// again: a result at cap c holds for every cap of at least tokens_total.
type Reading struct {
	Source      string  `parquet:"source,dict"`
	Member      string  `parquet:"member,dict"`
	RecordNo    int64   `parquet:"record_no,delta"`
	Kind        string  `parquet:"kind,dict"`
	Cap         int32   `parquet:"cap"` // 0: no cap
	Strategy    string  `parquet:"strategy,dict"`
	Seed        int64   `parquet:"seed"` // placebo only
	Prediction  string  `parquet:"prediction,dict"`
	Score       float32 `parquet:"score"`
	Margin      float32 `parquet:"margin"`
	LabelMargin float32 `parquet:"label_margin"` // logit of the label minus the best other; NaN without a label
	TokensKept  int32   `parquet:"tokens_kept"`
	Windows     int32   `parquet:"windows"`
	Cells       int64   `parquet:"cells"`
	FLOPs       int64   `parquet:"flops"`
	// Whole only, and only where it was looked for: the token range of the sentence without which
	// the label loses most, in the positions of [Row], and the zone it stands in (subject, own,
	// quoted, signature). An empty range: unknown.
	DecisiveFrom int32  `parquet:"decisive_from"`
	DecisiveTo   int32  `parquet:"decisive_to"`
	DecisiveZone string `parquet:"decisive_zone,dict"`
	// Nanos is how long the reading took; measured, so never in the file.
	Nanos int64 `parquet:"-"`
}

// Reject is one record that could not be evaluated: never counted as a misroute, never dropped
// silently. Detail names what was wrong without the customer's text.
type Reject struct {
	Source         string `parquet:"source,dict"`
	Member         string `parquet:"member,dict"`
	RecordNo       int64  `parquet:"record_no,delta"`
	ByteOffset     int64  `parquet:"byte_offset"`
	ByteLength     int64  `parquet:"byte_length"`
	Line           int64  `parquet:"line"`       // CSV and JSONL: first line; 0 otherwise
	Stage          string `parquet:"stage,dict"` // read, mime, text, tokenize, score
	Code           string `parquet:"code,dict"`  // fixed list in package mail
	Detail         string `parquet:"detail"`
	LimitName      string `parquet:"limit_name,dict"`
	LimitValue     int64  `parquet:"limit_value"`
	LimitActual    int64  `parquet:"limit_actual"`
	MessageID      string `parquet:"message_id"`
	SHA256         string `parquet:"sha256"` // of the raw bytes
	RecoveredChars int64  `parquet:"recovered_chars"`
}

// Run says how the rows came to be. It is written as JSON into the key-value metadata of
// results.parquet (key "misroute") and depends on configuration and inputs alone, so that the same
// run leaves the same bytes; measured times live in [Timing].
type Run struct {
	Schema      int    `json:"schema_version"`
	RunID       string `json:"run_id"` // hash of what follows
	Key         string `json:"key"`    // hash of the configuration alone: the same question asked of a file
	ToolVersion string `json:"tool_version"`
	Shard       string `json:"shard,omitempty"` // "2/7": a part of the export

	Model      ModelFacts     `json:"model"`
	Inputs     []InputFacts   `json:"inputs"`
	Cap        int            `json:"cap"` // 0: none
	Strategy   string         `json:"strategy"`
	Overlap    int            `json:"overlap,omitempty"`
	HeadTokens int            `json:"head_tokens,omitempty"`
	Aggregate  string         `json:"aggregate,omitempty"`
	Caps       []int          `json:"caps,omitempty"`       // of a sweep
	Strategies []string       `json:"strategies,omitempty"` // of a sweep
	Reference  string         `json:"reference"`            // how whole messages were read: "one pass", "windows of 512", ""
	Quotes     string         `json:"quotes"`
	Subject    bool           `json:"subject"`
	Queues     []string       `json:"queues"`    // of the model, in its order
	Kernel     string         `json:"kernel"`    // avx512, avx2, generic
	Precision  string         `json:"precision"` // fp32, int8
	Seed       uint64         `json:"seed"`
	Ledger     Ledger         `json:"ledger"`
	Sources    []SourceLedger `json:"sources"`
	Warnings   []string       `json:"warnings,omitempty"` // of the run, for a person
}

// ID is a hash of configuration and inputs: the same run has the same id.
func (r Run) ID() string {
	r.RunID = ""
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // strings and numbers alone: cannot be
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// ModelFacts names the router that was evaluated. A run as routed (without a model) has Family
// "as-routed" and no digests.
type ModelFacts struct {
	Name            string `json:"name"`
	Family          string `json:"family"`
	SHA256          string `json:"sha256,omitempty"`
	TokenizerSHA256 string `json:"tokenizer_sha256,omitempty"`
	Tokenizer       string `json:"tokenizer,omitempty"` // "WordPiece 8,000"
	Parameters      int64  `json:"parameters,omitempty"`
	Layers          int    `json:"layers,omitempty"`
	Heads           int    `json:"heads,omitempty"`
	Hidden          int    `json:"hidden,omitempty"`
	Positions       int    `json:"positions,omitempty"`   // 0: unlimited
	TrainedCap      int    `json:"trained_cap,omitempty"` // 0: unknown
}

// InputFacts names one input file and its content.
type InputFacts struct {
	Name   string `json:"name"`
	Format string `json:"format"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Ledger counts records. It balances, or the run fails:
// Read = Scored + Rejected + Duplicate + Filtered, Scored = Labelled + Unlabelled,
// Labelled = Routable + Unroutable (a label the model does not know).
type Ledger struct {
	Read       int64 `json:"read"`
	Scored     int64 `json:"scored"`
	Rejected   int64 `json:"rejected"`
	Duplicate  int64 `json:"duplicate"`
	Filtered   int64 `json:"filtered"`
	Labelled   int64 `json:"labelled"`
	Unlabelled int64 `json:"unlabelled"`
	Routable   int64 `json:"routable"`
	Unroutable int64 `json:"unroutable"`
}

// SourceLedger is the ledger of one source: Seen = OK + Salvaged + Duplicate + Filtered + Rejected.
type SourceLedger struct {
	Source       string `json:"source"`
	Format       string `json:"format"`
	Seen         int64  `json:"seen"`
	OK           int64  `json:"ok"`
	Salvaged     int64  `json:"salvaged"`
	Duplicate    int64  `json:"duplicate"`
	Filtered     int64  `json:"filtered"`
	Rejected     int64  `json:"rejected"`
	Incomplete   bool   `json:"incomplete,omitempty"` // cut off, at byte IncompleteAt
	IncompleteAt int64  `json:"incomplete_at,omitempty"`
}

// Timing is the measured part of a run: different every time, so it lives in files of its own
// (timings.parquet, a row a message; timings.json, the totals).
type Timing struct {
	Source     string `parquet:"source,dict"`
	Member     string `parquet:"member,dict"`
	RecordNo   int64  `parquet:"record_no,delta"`
	Tokens     int32  `parquet:"tokens"`      // kept
	TextNanos  int64  `parquet:"text_nanos"`  // bytes to text
	TokenNanos int64  `parquet:"token_nanos"` // text to ids and cut
	ScoreNanos int64  `parquet:"score_nanos"` // ids to scores
}

// Measured holds the totals of one execution, in timings.json.
type Measured struct {
	StartedAt         time.Time `json:"started_at"`
	Seconds           float64   `json:"seconds"`
	MessagesPerSecond float64   `json:"messages_per_second"`
	Workers           int       `json:"workers"`
	PeakBytes         int64     `json:"peak_bytes"`
	MeanScoreMillis   float64   `json:"mean_score_ms"` // a message, one core
	Host              string    `json:"cpu"`
	// BySetting has the mean milliseconds a message of each way of reading: "256 head" is the run's own,
	// "setting 128 tail" one of a sweep's, "whole 0 windows" the reference.
	BySetting map[string]float64 `json:"by_setting,omitempty"`
}

package reports

import (
	"errors"
	"fmt"

	"misroute/pipeline/result"
	"misroute/reports/cohort"
	"misroute/reports/stats"
)

// CompareOptions of a comparison. Margin and Alpha of the gate stand in Options.
type CompareOptions struct {
	Options
	Intersect bool // compare what the runs share instead of refusing different sets
	Workers   int  // goroutines of the resampling; the numbers do not depend on it
}

// Compare is the paired comparison of a candidate with a baseline over the same messages. Its
// fields are the JSON form. Differences are candidate minus baseline: negative is better.
type Compare struct {
	Schema   int             `json:"schema_version"`
	Report   string          `json:"report"` // "compare"
	Headline string          `json:"headline"`
	Gate     stats.Judgement `json:"gate"`
	Doubt    []string        `json:"doubt"` // what to know before acting on the verdict

	Baseline  Side     `json:"baseline"`
	Candidate Side     `json:"candidate"`
	Sets      Sets     `json:"messages"`
	Overall   Contrast `json:"overall"`
	// Routable is the same without labels that one of the routers does not know.
	Routable *Contrast                `json:"routable,omitempty"`
	MacroF1  *stats.MacroF1Difference `json:"macro_f1,omitempty"`
	Severity *stats.CostDifference    `json:"severity,omitempty"` // with a costs file

	// Control counts messages that neither run cut although both asked the same model: a flip among
	// them is a fault, not a finding. Nil when the models differ.
	Control *Unchanged `json:"control,omitempty"`
	// Price is what the dearer run pays, in FLOPs, for each misroute it saves. Nil where both cost
	// the same.
	Price *Price `json:"price,omitempty"`

	Flips Flips `json:"flips"`
	// Confirmed says that the overall difference is decided, so that buckets and queues are tested
	// as one family with Holm's correction; otherwise they are exploratory, with a q.
	Confirmed bool          `json:"families_tested"`
	Unit      string        `json:"length_unit"`
	LengthsOf string        `json:"lengths_of"` // baseline; candidate where the baseline has no tokenizer
	Lengths   []Contrast    `json:"lengths"`
	Queues    []QueueChange `json:"queues"`
	Ways      []WayChange   `json:"ways"`     // label to prediction, by what changed most
	Explored  []Contrast    `json:"explored"` // languages and weeks: exploratory

	Tests    []Test            `json:"tests"`
	Seeds    map[string]uint64 `json:"seeds"`
	Warnings []string          `json:"warnings"`

	options CompareOptions
}

// Side says what one side of a comparison is and what it costs, over the compared messages.
type Side struct {
	Name      string    `json:"name"` // of the model
	Runs      []RunFact `json:"runs"`
	Messages  int       `json:"messages"`   // scored, before pairing
	MeanKept  Number    `json:"mean_kept"`  // tokens read a message
	Cut       int       `json:"cut"`        // messages that lost tokens
	Windows   int64     `json:"windows"`    // passes through the model
	Cells     int64     `json:"cells"`      // of the score grids
	FLOPs     int64     `json:"flops"`      //
	Millis    Number    `json:"ms"`         // measured, a message on one core
	PeakBytes int64     `json:"peak_bytes"` // measured; 0: unknown
	ECE       Number    `json:"ece"`        // calibration error of the scores
	// Abstain is what happens when messages below the threshold go to a person; only with one.
	Abstain *Handed `json:"abstain,omitempty"`
	// WrongScore is the mean score of misroutes: how sure the router is when it is wrong.
	WrongScore Number `json:"mean_score_wrong"`
}

// Handed counts what a router still routes that hands messages below a threshold to a person.
type Handed struct {
	Threshold float64 `json:"threshold"`
	Routed    int     `json:"routed"`
	Of        int     `json:"of"`
	Wrong     int     `json:"wrong"` // among the routed
}

// RunFact names one run.
type RunFact struct {
	RunID     string `json:"run_id"`
	Model     string `json:"model"`
	SHA256    string `json:"sha256,omitempty"`
	Tokenizer string `json:"tokenizer,omitempty"`
	Setting   string `json:"setting"`
	Precision string `json:"precision,omitempty"`
	Kernel    string `json:"kernel,omitempty"`
	Version   string `json:"tool_version"`
	Weeks     string `json:"weeks,omitempty"`
}

// Sets counts the messages of both sides.
type Sets struct {
	Baseline  int        `json:"baseline"`  // scored
	Candidate int        `json:"candidate"` // scored
	Paired    int        `json:"paired"`
	Labelled  int        `json:"labelled"` // of the paired
	Intersect bool       `json:"intersect"`
	Repeats   int        `json:"repeats"`  // rows of a message that an earlier run of the side had
	LeftOut   int        `json:"left_out"` // messages that are not in both
	Unpaired  []Unpaired `json:"unpaired"` // at most as many as examples are listed
}

// Contrast compares both sides over one group of labelled messages.
type Contrast struct {
	Name  string       `json:"name"`
	Kind  string       `json:"kind"` // overall, length, queue, language, week
	Base  Rate         `json:"baseline"`
	Cand  Rate         `json:"candidate"`
	Pairs stats.Paired `json:"paired"`
	// Holm is the adjusted p where the group belongs to the tested family, Q the false discovery
	// rate where it is exploratory.
	Holm Number `json:"holm_p"`
	Q    Number `json:"q"`
	// Warnings name what else the group mixes.
	Mixed []cohort.Mixture `json:"mixed,omitempty"`
}

// few says whether the group is too small for a test.
func (c *Contrast) few() bool { return c.Base.Few }

// QueueChange is a queue in both runs: misroutes of the messages that belong there, and how well
// it is kept.
type QueueChange struct {
	Contrast
	BasePrecision Number `json:"baseline_precision"`
	CandPrecision Number `json:"candidate_precision"`
	BaseF1        Number `json:"baseline_f1"`
	CandF1        Number `json:"candidate_f1"`
}

// Unchanged is the negative control of a comparison of two ways to read for one model.
type Unchanged struct {
	N     int `json:"n"`
	Flips int `json:"flips"`
}

// Price is the extra cost of the dearer run.
type Price struct {
	Dearer string `json:"dearer"` // baseline, candidate
	stats.SavedCost
}

// WayChange is a way mail goes wrong, in both runs. Base - Saved + Added = Cand.
type WayChange struct {
	From  string  `json:"from"`
	To    string  `json:"to"`
	Base  int     `json:"baseline"`
	Cand  int     `json:"candidate"`
	Saved int     `json:"saved"` // went this way only in the baseline
	Added int     `json:"added"` // go this way only in the candidate
	Cost  float64 `json:"cost"`  // severity of one
	Q     Number  `json:"q"`     // exploratory
}

// Flips counts messages whose prediction changed, and lists the plainest.
type Flips struct {
	Negative   int    `json:"negative"` // right to wrong
	Positive   int    `json:"positive"` // wrong to right
	Neutral    int    `json:"neutral"`  // wrong to another wrong queue
	Unlabelled int    `json:"unlabelled"`
	Worst      []Flip `json:"worst"` // negative, by loss of margin
	Best       []Flip `json:"best"`  // positive, by gain of margin
	Other      []Flip `json:"other"` // neutral and unlabelled, by size of the change
}

// Flip is one message whose prediction changed.
type Flip struct {
	MessageID string `json:"message_id"`
	Source    string `json:"source"`
	RecordNo  int64  `json:"record_no"`
	Label     string `json:"label"`
	Base      string `json:"baseline"`
	Cand      string `json:"candidate"`
	Length    int    `json:"length"`
	Change    Number `json:"margin_change"` // of the label's margin, baseline to candidate
	Subject   string `json:"subject,omitempty"`
}

// Flipped is the number of messages whose prediction changed.
func (f *Flips) Flipped() int { return f.Negative + f.Positive + f.Neutral + f.Unlabelled }

// Verdict is the outcome of the gate.
func (c *Compare) Verdict() stats.Verdict { return c.Gate.Verdict }

// comparison is what NewCompare works on.
type comparison struct {
	o          CompareOptions
	base, cand *runSide
	pairs      []pairedMessage // by id
	judged     []pairedMessage // of those, labelled
	queues     *cohort.Queues
	buckets    cohort.Buckets
	c          *Compare
}

// NewCompare compares two sides, each one run or the weekly runs of several weeks. Runs over
// different messages are a *SetsDifferError unless o.Intersect; runs that share no labelled
// message cannot be compared.
func NewCompare(base, cand []*result.Folder, o CompareOptions) (*Compare, error) {
	if len(base) == 0 || len(cand) == 0 {
		return nil, errors.New("a comparison needs a baseline and a candidate")
	}
	o.Options = o.defaults()
	w := &comparison{o: o, base: newRunSide(base), cand: newRunSide(cand)}
	pairs, unpaired := joinSides(w.base, w.cand)
	if len(unpaired) > 0 && !o.Intersect {
		return nil, &SetsDifferError{len(w.base.rows), len(w.cand.rows), len(pairs), unpaired}
	}
	w.pairs = pairs
	w.c = &Compare{
		Schema: SchemaVersion, Report: "compare", options: o,
		Seeds: map[string]uint64{"resampling": o.Seed},
		Sets: Sets{
			Baseline: len(w.base.rows), Candidate: len(w.cand.rows), Paired: len(pairs), Intersect: o.Intersect,
			Repeats: w.base.repeats + w.cand.repeats, LeftOut: len(unpaired), Unpaired: clip(unpaired, o.Examples),
		},
	}
	if err := w.number(); err != nil {
		return nil, err
	}
	if len(w.judged) == 0 {
		return nil, fmt.Errorf("no labelled message in common: %s in the baseline, %s in the candidate, %s in both, none of them labelled",
			count(len(w.base.rows)), count(len(w.cand.rows)), count(len(pairs)))
	}
	w.c.Baseline, w.c.Candidate = w.side(w.base, false), w.side(w.cand, true)
	w.overall()
	w.control()
	w.price()
	w.flips()
	w.families()
	w.ways()
	w.warn()
	w.words()
	return w.c, nil
}

// clip keeps the first n.
func clip[T any](list []T, n int) []T { return list[:min(len(list), n)] }

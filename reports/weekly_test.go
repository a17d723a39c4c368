package reports

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"misroute/pipeline/result"
)

// crumb makes the run of a cake shop's week out of nothing but a seed: n messages, a router that
// is right nine times in ten when the deciding sentence was read, and mail of which long messages
// bury that sentence. The cut messages are read whole, by tail, and with a placebo cut.
func crumb(seed uint64, n int) *result.Folder {
	random := rand.New(rand.NewPCG(seed, 47))
	queues := []string{"refunds", "late deliveries", "allergy questions", "general feedback", "wholesale", "order changes"}
	f := &result.Folder{Run: result.Run{
		Schema: 1, RunID: "5f1d0c2a9b7e", ToolVersion: "0.1.0",
		Model:  result.ModelFacts{Name: "crumb-v3", Family: "bert", SHA256: "9c1e0000000000000000000000000000000000000000000000000000000000d4", TokenizerSHA256: "02aa00000000000000000000000000000000000000000000000000000000007f", Tokenizer: "WordPiece 8,000", Parameters: 1_450_000, Layers: 2, Heads: 2, Hidden: 128, Positions: 512, TrainedCap: 256},
		Inputs: []result.InputFacts{{Name: "2026-W47.mbox", Format: "mbox", Bytes: 1_234_567, SHA256: "ab12000000000000000000000000000000000000000000000000000000000099"}},
		Cap:    256, Strategy: "head", Reference: "windows of 512", Quotes: "drop", Subject: true, Queues: queues, Kernel: "avx512", Precision: "fp32", Seed: 1,
	}}
	at := func(record int64) (source string) { return "2026-W47.mbox" }
	scores := func(best int, sure float64) []result.QueueScore {
		list := make([]result.QueueScore, len(queues))
		for i, q := range queues {
			list[i] = result.QueueScore{Queue: q, Score: float32((1 - sure) / float64(len(queues)-1))}
			if i == best {
				list[i].Score = float32(sure)
			}
		}
		return list
	}
	for i := range n {
		record := int64(i + 1)
		label := min(int(math.Abs(random.NormFloat64())*2), len(queues)-1)
		tokens := int32(math.Exp(random.NormFloat64()*0.8+4.9)) + 8
		decisive := int32(random.Float64() * float64(tokens))
		kept := min(tokens, 256)
		predict := func(seen bool) int {
			if seen && random.Float64() < 0.95 {
				return label
			}
			return (label + 3 + random.IntN(2)) % len(queues)
		}
		whole := predict(true)
		best := whole
		if kept < tokens && decisive >= kept {
			best = predict(random.Float64() < 0.5)
		}
		sure := 0.45 + 0.5*random.Float64()
		date := time.Date(2026, 11, 16+i%7, 9, i%60, 0, 0, time.UTC)
		row := result.Row{
			RunID: f.Run.RunID, Source: at(record), RecordNo: record, ByteOffset: int64(i) * 900, ByteLength: 880,
			MessageID: fmt.Sprintf("<%d@crumb.example>", record), ContentSHA256: fmt.Sprintf("%064x", record), ThreadKey: fmt.Sprintf("<%d@crumb.example>", 1+(record-1)/2*2*int64(random.IntN(2))+record*0),
			Week: "2026-W47", Date: &date, Label: queues[label], LabelSource: "header", Prediction: queues[best], Score: float32(sure), Margin: 1,
			Scores: scores(best, sure), TokensTotal: tokens, TokensKept: kept, Kept: []result.Range{{From: 0, To: kept}}, Cap: 256, Strategy: "head",
			Windows: 1, Cells: int64(kept) * int64(kept) * 4, FLOPs: int64(kept) * 4_000_000, TextChars: tokens * 4, SubjectTokens: 6, Language: "en", Status: result.StatusScored,
		}
		row.ThreadKey = fmt.Sprintf("<thread-%d@crumb.example>", i-random.IntN(2)*(i%2))
		if i%40 == 7 {
			row.Warnings = []string{"charset_guessed"}
		}
		f.Rows = append(f.Rows, row)
		if kept == tokens {
			continue
		}
		reading := result.Reading{Source: row.Source, RecordNo: record, Kind: result.ReadWhole, Strategy: "windows", Prediction: queues[whole], Score: 0.8, Margin: 2, LabelMargin: 2 - 4*b2f(whole != label), TokensKept: tokens, Windows: 1 + tokens/512, Cells: int64(tokens) * int64(tokens) * 4, FLOPs: int64(tokens) * 4_000_000}
		if i%2 == 0 {
			reading.DecisiveFrom, reading.DecisiveTo, reading.DecisiveZone = decisive, min(decisive+12, tokens), "own"
		}
		f.Readings = append(f.Readings, reading)
		for s := range int64(3) {
			p := reading
			p.Kind, p.Cap, p.Strategy, p.Seed, p.DecisiveTo = result.ReadPlacebo, 256, "head", s+1, p.DecisiveFrom
			p.TokensKept, p.Windows = 256, 1
			p.Prediction = queues[predict(random.Float64() < 0.8)]
			f.Readings = append(f.Readings, p)
		}
	}
	for i := range 3 {
		f.Rejects = append(f.Rejects, result.Reject{Source: "2026-W47.mbox", RecordNo: int64(n + i + 1), Stage: "mime", Code: "mime_too_deep", Detail: "nested 101 deep", LimitName: "depth", LimitValue: 100, LimitActual: 101})
	}
	ledger(f)
	return f
}

func b2f(b bool) float32 {
	if b {
		return 1
	}
	return 0
}

// ledger counts the folder's ledger from its rows.
func ledger(f *result.Folder) {
	var l result.Ledger
	known := map[string]bool{}
	for _, q := range f.Run.Queues {
		known[q] = true
	}
	for i := range f.Rows {
		r := &f.Rows[i]
		l.Read++
		switch r.Status {
		case result.StatusDuplicate:
			l.Duplicate++
			continue
		case result.StatusFiltered:
			l.Filtered++
			continue
		}
		l.Scored++
		switch {
		case r.Label == "":
			l.Unlabelled++
		case known[r.Label] || len(known) == 0:
			l.Labelled++
			l.Routable++
		default:
			l.Labelled++
			l.Unroutable++
		}
	}
	l.Read += int64(len(f.Rejects))
	l.Rejected = int64(len(f.Rejects))
	f.Run.Ledger = l
}

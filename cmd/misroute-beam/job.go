package main

import (
	"bytes"
	"context"
	"encoding/gob"
	"reflect"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"misroute/pipeline"
	"misroute/pipeline/mail"
	"misroute/pipeline/result"
)

// What crosses the runner must be known by name in every process, before any of them starts.
func init() {
	beam.RegisterCoder(reflect.TypeFor[Piece](), encodePiece, decodePiece)
	register.DoFn3x1[context.Context, Ref, func(int, Piece), error](&routeFn{})
	register.Emitter2[int, Piece]()
	register.DoFn4x1[context.Context, int, func(*Piece) bool, func(Part), error](&collectFn{})
	register.Iter1[Piece]()
	register.Emitter1[Part]()
	register.DoFn3x1[context.Context, []byte, func(*Part) bool, error](&mergeFn{})
}

// Job is everything a worker must know. It travels in the DoFns, so that a worker process needs no flags.
type Job struct {
	Args    []string // flags of the evaluation, as they were given
	Exports []Export
	Out     string
	Shards  int
	Workers int    // messages at a time in one process; 0: one a core
	Kernel  string // variant that all use; empty: each its fastest
}

// Export is one file or folder of messages.
type Export struct{ Path, Name string }

// Ref names the messages of an export that one worker evaluates: those in the parts Split,
// Split+Splits, Split+2*Splits and so on. References are what the runner spreads, never messages: every
// worker reads its export itself, which costs far less than to route its share of it.
type Ref struct{ Export, Split, Splits int }

// has says whether the messages of a part are among those of the reference.
func (r Ref) has(part int) bool { return (part-r.Split)%r.Splits == 0 }

// Piece is some outcomes of one part, in reading order, as they go to the part's collector. The last
// piece of each reference says what was read.
type Piece struct {
	Export   int
	Outcomes []pipeline.Outcome
	Read     *Read // the last one
}

// Read says what a reference found in its export.
type Read struct {
	Facts     result.Run // of the evaluation, without inputs and ledger
	Source    mail.Source
	Elsewhere int64 // records that are in other parts
}

// Part is one part of the run as it stands in storage.
type Part struct {
	Number         int
	Path           string
	FromLabelsFile int64
	NotInLabels    []string
}

// encodePiece is gob and not Beam's own row coder, since a margin may be no number and a date absent.
func encodePiece(p Piece) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(p)
	return b.Bytes(), err
}

func decodePiece(b []byte) (Piece, error) {
	var p Piece
	err := gob.NewDecoder(bytes.NewReader(b)).Decode(&p)
	return p, err
}

// build makes the pipeline:
//
//	references -> reshuffle -> route -> by part: collect -> merge
func build(s beam.Scope, job Job) {
	s = s.Scope("misroute")
	refs := beam.Reshuffle(s, beam.CreateList(s, references(len(job.Exports), job.Shards)))
	pieces := beam.ParDo(s, &routeFn{Job: job}, refs)
	parts := beam.ParDo(s, &collectFn{Job: job}, beam.GroupByKey(s, pieces))
	beam.ParDo0(s, &mergeFn{Job: job}, beam.Impulse(s), beam.SideInput{Input: parts})
}

// references splits each export as often as it takes to have work for all parts at once: one huge file
// into all parts, and many files not at all.
func references(exports, shards int) []Ref {
	splits := max(1, (shards+exports-1)/exports)
	var refs []Ref
	for e := range exports {
		for k := range splits {
			refs = append(refs, Ref{e, k + 1, splits})
		}
	}
	return refs
}

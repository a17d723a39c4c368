package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	netmail "net/mail"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"misroute/attention"
	"misroute/attention/train"
	"misroute/pipeline/mail"
	"misroute/pipeline/text"
	"misroute/tokenize"
)

// corpus is the labelled mail of a training.
type corpus struct {
	items  []lesson
	queues []string // sorted

	read, rejected, unlabelled, repeated, filtered, rare int64
	unmatched                                            []string // some message ids without a label
	sources                                              []mail.Source
	seen                                                 map[string]struct{}
}

// lesson is one labelled message.
type lesson struct {
	text   string // what the router reads
	queue  string
	label  int32 // index of queue
	thread string
	date   time.Time
	group  string // value of the header that groups messages, if one was asked for
}

// chunk is how many messages are turned into text together: enough to keep every worker busy, few
// enough that raw mail never fills the memory.
const chunk = 256

// readCorpus reads exports to learn from.
func readCorpus(ctx context.Context, o *trainOptions, update func(done, total int64, note string)) (*corpus, error) {
	c, err := readLabelled(ctx, o, update)
	if err != nil {
		return nil, err
	}
	return c, c.finish(o)
}

// readLabelled reads exports in order; workers turn messages into text.
func readLabelled(ctx context.Context, o *trainOptions, update func(done, total int64, note string)) (*corpus, error) {
	r, err := openExports(ctx, &o.exports, o.mail)
	if err != nil {
		return nil, usageError(err)
	}
	c := &corpus{seen: map[string]struct{}{}}
	extractors := make([]*text.Extractor, o.workers)
	for i := range extractors {
		extractors[i] = text.NewExtractor(o.text)
	}
	for done := false; !done; {
		var batch []*mail.Message
		for len(batch) < chunk {
			m, err := r.Next()
			if errors.Is(err, io.EOF) {
				done = true
				break
			}
			if err != nil {
				return nil, errors.Join(usageError(err), r.Close())
			}
			batch = append(batch, m)
		}
		c.add(batch, o, extractors)
		update(r.BytesRead(), r.TotalBytes(), fmt.Sprintf("reading mail, %s messages", group(c.read)))
	}
	c.sources = r.Sources()
	return c, r.Close()
}

// extracted is a message after the workers had it.
type extracted struct {
	identity mail.Identity
	text     text.Text
	group    string
	bad      bool
}

func (c *corpus) add(batch []*mail.Message, o *trainOptions, extractors []*text.Extractor) {
	results := make([]extracted, len(batch))
	var workers sync.WaitGroup
	for w, e := range extractors {
		workers.Go(func() {
			for i := w; i < len(batch); i += len(extractors) {
				results[i] = extract(batch[i], o, e)
			}
		})
	}
	workers.Wait()
	for i, x := range results {
		c.read++
		m := batch[i]
		key := x.text.ContentSHA256 + " " + x.identity.MessageID
		_, repeated := c.seen[key]
		switch {
		case m.Filtered != "":
			c.filtered++
		case x.bad:
			c.rejected++
		case x.identity.Label == "":
			if c.unlabelled++; len(c.unmatched) < 3 {
				c.unmatched = append(c.unmatched, x.identity.MessageID)
			}
		case repeated:
			c.repeated++
		default:
			c.seen[key] = struct{}{}
			thread := x.identity.ThreadKey
			if thread == "" {
				thread = x.text.BodyHash
			}
			c.items = append(c.items, lesson{
				text: strings.Clone(x.text.Reading(o.subject)), queue: x.identity.Label, thread: thread, date: x.identity.Date, group: x.group,
			})
		}
	}
}

func extract(m *mail.Message, o *trainOptions, e *text.Extractor) (x extracted) {
	if m.Reject != nil {
		return extracted{bad: true}
	}
	x.identity = o.mail.Labels.Identify(m)
	var reject *mail.Reject
	x.text, reject = e.Extract(m, &x.identity)
	x.bad = reject != nil
	if o.groupHeader != "" && m.Raw != nil {
		if h, err := netmail.ReadMessage(bytes.NewReader(m.Raw)); err == nil {
			x.group, _, _ = strings.Cut(h.Header.Get(o.groupHeader), ";")
			x.group = strings.TrimSpace(x.group)
		}
	}
	return x
}

// finish names the queues and refuses mail that nothing can be learned from.
func (c *corpus) finish(o *trainOptions) error {
	c.seen = nil
	labelled := int64(len(c.items)) + c.repeated
	switch {
	case c.read == 0:
		return usagef("%s: no messages to learn from", strings.Join(o.exports, ", "))
	case labelled == 0 && c.unlabelled > 0:
		if err := o.mail.Labels.Check(0, c.unlabelled, c.unmatched...); err != nil {
			return usageError(err)
		}
		return usagef("none of %s messages has a label: give --labels FILE (message id, queue), or an export with an %s header", group(c.unlabelled), "X-Queue")
	case labelled == 0:
		return usagef("none of %s messages can be read: see misroute inspect %s", group(c.read), o.exports[0])
	}
	count := map[string]int{}
	for _, m := range c.items {
		count[m.queue]++
	}
	c.items = slices.DeleteFunc(c.items, func(m lesson) bool {
		rare := count[m.queue] < o.dropRare
		if rare {
			c.rare++
		}
		return rare
	})
	var single []string
	for queue, n := range count {
		if n < o.dropRare {
			continue
		}
		c.queues = append(c.queues, queue)
		if n == 1 {
			single = append(single, queue)
		}
	}
	slices.Sort(c.queues)
	slices.Sort(single)
	switch {
	case len(c.queues) == 0:
		return usagef("no queue has %d messages; see --drop-rare", o.dropRare)
	case len(c.queues) == 1:
		return usagef("all %s labelled messages are of one queue, %q: there is nothing to tell apart", group(int64(len(c.items))), c.queues[0])
	case len(single) > 0:
		return usagef("%s has one message only: too few to learn it and to judge it; give more mail, or leave such queues out with --drop-rare 2", quoteAll(single))
	}
	for i := range c.items {
		label, _ := slices.BinarySearch(c.queues, c.items[i].queue)
		c.items[i].label = int32(label)
	}
	return nil
}

func quoteAll(queues []string) string {
	const most = 5
	list := make([]string, 0, most)
	for _, q := range queues[:min(len(queues), most)] {
		list = append(list, fmt.Sprintf("%q", q))
	}
	s := "queue " + strings.Join(list, ", ")
	if len(queues) > most {
		s += fmt.Sprintf(" and %d more (each)", len(queues)-most)
	}
	return s
}

// leftOut says what was read and not used.
func (c *corpus) leftOut() string {
	var parts []string
	for _, p := range []struct {
		n    int64
		what string
	}{
		{c.unlabelled, "without a label"}, {c.repeated, "repeated"}, {c.rejected, "rejected"}, {c.filtered, "filtered"}, {c.rare, "of rare queues"},
	} {
		if p.n > 0 {
			parts = append(parts, group(p.n)+" "+p.what)
		}
	}
	if parts == nil {
		return ""
	}
	return "; left out: " + strings.Join(parts, ", ")
}

func (c *corpus) origins() []train.Origin {
	list := make([]train.Origin, len(c.items))
	for i, m := range c.items {
		list[i] = train.Origin{Thread: m.thread, Date: m.date, Label: m.label}
	}
	return list
}

// encode turns every message into token ids.
func (c *corpus) encode(t *tokenize.Tokenizer, workers int) []train.Example {
	examples := make([]train.Example, len(c.items))
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			var e tokenize.Encoding
			for i := w; i < len(c.items); i += workers {
				t.Encode(&e, []byte(c.items[i].text))
				examples[i] = train.Example{IDs: slices.Clone(e.IDs), Label: c.items[i].label}
			}
		})
	}
	group.Wait()
	return examples
}

// tokenKinds says what each token is to a router of words. Pieces are told from beginnings of words by
// the mark of the vocabulary: "##" on what continues (WordPiece), or a space's stand-in on what begins
// (byte-level BPE and SentencePiece).
func tokenKinds(t *tokenize.Tokenizer) []uint8 {
	kinds := make([]uint8, t.MaxID()+1)
	special := map[string]bool{}
	for _, s := range t.SpecialTokens() {
		special[s] = true
	}
	spaces := false
	for id := range kinds {
		token := t.Token(int32(id))
		spaces = spaces || strings.HasPrefix(token, "Ġ") || strings.HasPrefix(token, "▁")
	}
	for id := range kinds {
		token := t.Token(int32(id))
		var word string
		continues := false
		if spaces {
			word = strings.TrimPrefix(strings.TrimPrefix(token, "Ġ"), "▁")
			continues = word == token
		} else {
			word = strings.TrimPrefix(token, "##")
			continues = word != token
		}
		first, size := utf8.DecodeRuneInString(word)
		switch {
		case special[token] || !hasWordRune(word):
			kinds[id] = attention.BagIgnored
		case continues:
			kinds[id] = attention.BagContinues
		case size == len(word) && !unicode.In(first, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
			kinds[id] = attention.BagShort
		default:
			kinds[id] = attention.BagStart
		}
	}
	return kinds
}

func hasWordRune(s string) bool {
	return bytes.ContainsFunc([]byte(s), func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) })
}

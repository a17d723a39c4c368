package pipeline

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"misroute/pipeline/mail"
	"misroute/pipeline/result"
)

// resumer tells the messages that an unfinished run has done, in order. Resume goes by message, not by
// index: each must still stand where it stood, and a segment's messages must be the same bytes. One
// segment's places are held at a time.
type resumer struct {
	out  *result.Partial
	left int64 // messages that the source has not given yet

	segment       int // the next one to be loaded
	rows, rejects []result.Placed
	want, sum     uint32
}

// has says whether m was finished by the run that is resumed.
func (d *resumer) has(m *mail.Message) (bool, error) {
	if d.left == 0 {
		return false, nil
	}
	for len(d.rows)+len(d.rejects) == 0 {
		var err error
		if d.rows, d.rejects, d.want, err = d.out.Places(d.segment); err != nil {
			return false, err
		}
		d.segment++
		d.sum = 0
	}
	here := result.Placed{Source: m.Source, Member: m.Member, RecordNo: m.RecordNo, ByteOffset: m.Offset, ByteLength: m.Length}
	switch {
	case len(d.rows) > 0 && d.rows[0] == here:
		d.rows = d.rows[1:]
	case len(d.rejects) > 0 && d.rejects[0] == here:
		d.rejects = d.rejects[1:]
	default:
		next := slices.Concat(d.rows[:min(1, len(d.rows))], d.rejects[:min(1, len(d.rejects))])[0]
		return false, fmt.Errorf("%s: record %d at byte %d (+%d) does not stand where the unfinished run saw record %d (byte %d, +%d): the export changed; start over without --resume",
			m.Source, m.RecordNo, m.Offset, m.Length, next.RecordNo, next.ByteOffset, next.ByteLength)
	}
	d.left--
	d.sum = addChecksum(d.sum, m)
	if len(d.rows)+len(d.rejects) == 0 && d.sum != d.want {
		return false, fmt.Errorf("%s: the messages up to record %d are not those of the unfinished run (checksum %08x, it has %08x): the export changed; start over without --resume",
			m.Source, m.RecordNo, d.sum, d.want)
	}
	return true, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// addChecksum extends the checksum of a segment by a message's bytes. It is there to notice an export
// that was changed, not one that was forged.
func addChecksum(sum uint32, m *mail.Message) uint32 {
	var length [8]byte
	add := func(b []byte) {
		binary.LittleEndian.PutUint64(length[:], uint64(len(b)))
		sum = crc32.Update(sum, castagnoli, length[:])
		sum = crc32.Update(sum, castagnoli, b)
	}
	add(m.Raw)
	if c := m.Columns; c != nil {
		for _, field := range []string{c.ID, c.Subject, c.Text, c.HTML, c.Date, c.Label, c.Routed, c.Thread} {
			add([]byte(field))
		}
	}
	return sum
}

package mail

import (
	"errors"
	"io"
)

// chunk is the least a stream asks its reader for: large enough that system calls and SIMD
// searches amortise, small enough to stay in the second-level cache.
const chunk = 256 << 10

// A stream is a window over a reader that grows on demand and knows its offset.
type stream struct {
	r        io.Reader
	buf      []byte
	beg, end int
	off      int64 // of buf[beg]
	err      error // sticky; io.EOF at the end, anything else is a fault
	most     int   // the largest record that is worth holding; 0: unknown
}

func newStream(r io.Reader) *stream { return &stream{r: r} }

// window is what has been read and not yet consumed.
func (s *stream) window() []byte { return s.buf[s.beg:s.end] }

// fill makes the window at least n bytes long and reports whether it is; false at the end.
func (s *stream) fill(n int) bool {
	for s.end-s.beg < n && s.err == nil {
		s.room(n)
		m, err := s.r.Read(s.buf[s.end:])
		s.end += m
		if err != nil {
			s.err = err
		} else if m == 0 {
			// A reader may return nothing without error; the next call tells.
			continue
		}
	}
	return s.end-s.beg >= n
}

// room makes space to read behind the window, moving it to the front or to a new buffer.
func (s *stream) room(n int) {
	used := s.end - s.beg
	want := max(2*chunk, n+chunk)
	switch {
	case s.beg == 0 && s.end < len(s.buf):
		return
	case len(s.buf)-s.end >= chunk/4 && len(s.buf)-s.beg >= n:
		return
	case len(s.buf) >= want && len(s.buf) <= 16*want:
		copy(s.buf, s.buf[s.beg:s.end])
	default:
		// Doubling keeps the copies of one huge record linear; a buffer sixteen times too large,
		// left over from such a record, is given back.
		size := 2 * used
		if size > 16<<20 && s.most > used {
			size = s.most + 2*chunk // the last step: doubling once more would hold twice as much
		}
		grown := make([]byte, max(want, size))
		copy(grown, s.buf[s.beg:s.end])
		s.buf = grown
	}
	s.beg, s.end = 0, used
}

// advance consumes n bytes of the window.
func (s *stream) advance(n int) {
	s.beg += n
	s.off += int64(n)
}

// ended says that the reader has nothing more than the window.
func (s *stream) ended() bool { return s.err != nil }

// fault is the error that broke the stream off; nil after a plain end.
func (s *stream) fault() error {
	if s.err == nil || errors.Is(s.err, io.EOF) && !errors.Is(s.err, io.ErrUnexpectedEOF) {
		return nil
	}
	return s.err
}

// skipBOM consumes a UTF-8 byte order mark and returns its length.
func (s *stream) skipBOM() int {
	if s.fill(3); len(s.window()) >= 3 && string(s.window()[:3]) == "\xef\xbb\xbf" {
		s.advance(3)
		return 3
	}
	return 0
}

// Read makes a stream a reader of what it has not consumed.
func (s *stream) Read(p []byte) (int, error) {
	if !s.fill(1) {
		if s.err != nil {
			return 0, s.err
		}
		return 0, io.EOF
	}
	n := copy(p, s.window())
	s.advance(n)
	return n, nil
}

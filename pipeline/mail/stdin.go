package mail

import (
	"context"
	"errors"
	"io"
	"time"
)

// pipe reads standard input so that an interrupt need not wait for the program at the other end: a
// blocked read cannot be taken back, so a goroutine does the reading, and is left behind by the end of
// ctx.
type pipe struct {
	ctx   context.Context
	parts chan part
	free  chan []byte
	buf   []byte // to be given back
	left  []byte // of buf, not yet given out
	err   error
}

type part struct {
	buf []byte
	n   int
	err error
}

// pipeGrace is how long the end of a pipe waits for an interrupt: Ctrl-C reaches the writer of the
// pipe as well, and an export that ends because its writer was stopped is not a whole one.
const pipeGrace = 100 * time.Millisecond

func newPipe(ctx context.Context, r io.Reader) *pipe {
	p := &pipe{ctx: ctx, parts: make(chan part), free: make(chan []byte, 2)}
	p.free <- make([]byte, chunk)
	p.free <- make([]byte, chunk)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case buf := <-p.free:
				n, err := r.Read(buf)
				select {
				case <-ctx.Done():
					return
				case p.parts <- part{buf, n, err}:
				}
				if err != nil {
					return
				}
			}
		}
	}()
	return p
}

func (p *pipe) Read(b []byte) (int, error) {
	for len(p.left) == 0 {
		if p.buf != nil {
			p.free <- p.buf
			p.buf = nil
		}
		if p.err != nil {
			return 0, p.err
		}
		select {
		case <-p.ctx.Done():
			p.err = p.ctx.Err()
		case x := <-p.parts:
			p.buf, p.left, p.err = x.buf, x.buf[:x.n], x.err
			if errors.Is(x.err, io.EOF) {
				select {
				case <-p.ctx.Done():
					p.err = p.ctx.Err()
				case <-time.After(pipeGrace):
				}
			}
		}
	}
	n := copy(b, p.left)
	p.left = p.left[n:]
	return n, nil
}

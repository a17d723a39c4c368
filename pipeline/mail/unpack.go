package mail

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// maxZstdWindow bounds the memory of a decoder; frames made with --ultra --long=27 still read.
const maxZstdWindow = 128 << 20

var errExpansion = errors.New("expands beyond the limit")

// counting counts what passes.
type counting struct {
	r io.Reader
	n int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// expanding passes decompressed bytes on until they exceed the allowed multiple of compressed ones.
type expanding struct {
	r          io.Reader
	compressed func() int64
	limits     *Limits
	out        int64
}

func (e *expanding) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	e.out += int64(n)
	if e.out > e.limits.ExpansionFloor && e.out > e.limits.Expansion*e.compressed() {
		return n, fmt.Errorf("%w of %d to 1 after %d bytes", errExpansion, e.limits.Expansion, e.limits.ExpansionFloor)
	}
	return n, err
}

// unpack looks at the first bytes of r and returns the decompressed stream and the name of the
// compression, empty for none. What is compressed twice is unpacked twice.
func unpack(r io.Reader, name string, l *Limits) (io.Reader, string, error) {
	how := ""
	for range l.ArchiveDepth {
		in := &counting{r: r}
		br := bufio.NewReaderSize(in, 64<<10)
		head, _ := br.Peek(6)
		read := func() int64 { return in.n }
		switch {
		case bytes.HasPrefix(head, []byte("\x1f\x8b")):
			z, err := gzip.NewReader(br)
			if err != nil {
				return nil, "gz", fmt.Errorf("%s: broken gzip header: %w", name, err)
			}
			r, how = &expanding{r: z, compressed: read, limits: l}, "gz"
		case bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")), len(head) >= 4 && head[0]&0xf0 == 0x50 && head[1] == 0x2a && head[2] == 0x4d && head[3] == 0x18:
			// One decoder goroutine less, and no read-ahead to wait for on Close.
			z, err := zstd.NewReader(br, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxZstdWindow))
			if err != nil {
				return nil, "zst", fmt.Errorf("%s: %w", name, err)
			}
			r, how = &expanding{r: z, compressed: read, limits: l}, "zst"
		case bytes.HasPrefix(head, []byte("BZh")):
			r, how = &expanding{r: bzip2.NewReader(br), compressed: read, limits: l}, "bz2"
		case bytes.HasPrefix(head, []byte("\xfd7zXZ\x00")):
			return nil, "xz", fmt.Errorf("%s: xz compression is not read; use gz, zst or bz2", name)
		case bytes.HasPrefix(head, []byte("7z\xbc\xaf\x27\x1c")):
			return nil, "7z", fmt.Errorf("%s: 7z archives are not read; use zip or tar", name)
		default:
			return br, how, nil
		}
	}
	return r, how, nil
}

package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// maxHeader is the longest safetensors header that is read: room for a hundred thousand tensors,
// where the largest model in use has some thousand. The format's own limit is 100 MB; parsing so
// much text would need several times as much memory before a single weight is known to be good.
const maxHeader = 16 << 20

// DType is the storage type of a tensor, spelled as in the file.
type DType string

// The storage types that can be read; every one of them becomes float32.
const (
	F64  DType = "F64"
	F32  DType = "F32"
	F16  DType = "F16"
	BF16 DType = "BF16"
	I64  DType = "I64"
	I32  DType = "I32"
	I16  DType = "I16"
	I8   DType = "I8"
	U64  DType = "U64"
	U32  DType = "U32"
	U16  DType = "U16"
	U8   DType = "U8"
	Bool DType = "BOOL"
)

// bytes is the size of one element, 0 for a type that is not read.
func (d DType) bytes() int64 {
	switch d {
	case F64, I64, U64:
		return 8
	case F32, I32, U32:
		return 4
	case F16, BF16, I16, U16:
		return 2
	case I8, U8, Bool:
		return 1
	}
	return 0
}

// Info says what a file holds under one name.
type Info struct {
	Name  string
	DType DType
	Shape []int // empty for a scalar
	begin int64 // byte range in the data part of its file
	end   int64
}

// Len is the number of elements.
func (i *Info) Len() int { return int((i.end - i.begin) / i.DType.bytes()) }

// File is an open safetensors file whose header has been checked: every tensor lies inside the file,
// has a known type and as many bytes as its shape wants, and the tensors fill the data part without
// gaps or overlaps (the rule of the format, https://github.com/huggingface/safetensors).
type File struct {
	name     string
	data     io.ReaderAt // the data part, offset 0 = first byte after the header
	infos    []Info      // in the order of the data
	metadata map[string]string
}

// NewFile reads and checks the header of the safetensors file in r, which holds size bytes; name is
// for messages. It allocates in proportion to the header, never to what the header claims.
func NewFile(r io.ReaderAt, size int64, name string) (*File, error) {
	fail := func(format string, a ...any) (*File, error) {
		return nil, fmt.Errorf("%s: %s", name, fmt.Sprintf(format, a...))
	}
	var length [8]byte
	if size < int64(len(length)) {
		return fail("%d bytes are too few for a safetensors file", size)
	}
	if _, err := r.ReadAt(length[:], 0); err != nil {
		return fail("reading the header's length: %v", err)
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > uint64(size-8) {
		return fail("not a safetensors file, or cut off: the header claims %d bytes, the file has %d", n, size)
	}
	if n > maxHeader {
		return fail("the header claims %d bytes, more than the %d that are read", n, maxHeader)
	}
	header := make([]byte, n)
	if _, err := r.ReadAt(header, 8); err != nil {
		return fail("reading the header: %v", err)
	}
	f := &File{name: name, data: io.NewSectionReader(r, 8+int64(n), size-8-int64(n))}
	if err := f.parseHeader(header); err != nil {
		return fail("%v", err)
	}
	if err := f.checkLayout(size - 8 - int64(n)); err != nil {
		return fail("%v", err)
	}
	return f, nil
}

// parseHeader fills infos and metadata from the JSON object {name: {dtype, shape, data_offsets}}.
func (f *File) parseHeader(header []byte) error {
	dec := json.NewDecoder(bytes.NewReader(header))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return errors.New("the header is not a JSON object")
	}
	seen := make(map[string]bool)
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return fmt.Errorf("the header is not JSON: %w", err)
		}
		name, _ := t.(string) // the decoder lets only strings stand where a key is due
		if seen[name] {
			return fmt.Errorf("tensor %s stands twice in the header", quote(name))
		}
		seen[name] = true
		if name == "__metadata__" {
			if err := dec.Decode(&f.metadata); err != nil {
				return fmt.Errorf("__metadata__ of the header: %w", err)
			}
			continue
		}
		info, err := decodeInfo(dec, name)
		if err != nil {
			return fmt.Errorf("tensor %s: %w", quote(name), err)
		}
		f.infos = append(f.infos, info)
	}
	if _, err := dec.Token(); err != nil {
		return fmt.Errorf("the header is not JSON: %w", err)
	}
	if rest := bytes.TrimRight(header[dec.InputOffset():], " \t\r\n\x00"); len(rest) > 0 {
		return errors.New("something follows the header's JSON object")
	}
	return nil
}

// decodeInfo reads one tensor's entry and checks that type, shape and byte range agree.
func decodeInfo(dec *json.Decoder, name string) (Info, error) {
	var e struct {
		DType   *string `json:"dtype"`
		Shape   []int64 `json:"shape"`
		Offsets []int64 `json:"data_offsets"`
	}
	if err := dec.Decode(&e); err != nil {
		return Info{}, err
	}
	switch {
	case e.DType == nil:
		return Info{}, errors.New("no dtype in the header")
	case e.Shape == nil:
		return Info{}, errors.New("no shape in the header")
	case len(e.Offsets) != 2:
		return Info{}, errors.New("data_offsets in the header are not two numbers")
	}
	info := Info{Name: name, DType: DType(*e.DType), begin: e.Offsets[0], end: e.Offsets[1], Shape: make([]int, len(e.Shape))}
	want := info.DType.bytes()
	if want == 0 {
		return Info{}, fmt.Errorf("dtype %s is not one of F64 F32 F16 BF16 I64 I32 I16 I8 U64 U32 U16 U8 BOOL", quote(*e.DType))
	}
	empty := slices.Contains(e.Shape, 0)
	for i, d := range e.Shape {
		if d < 0 || d > math.MaxInt32 {
			return Info{}, fmt.Errorf("dimension %d of the shape is %d", i, d)
		}
		if !empty && want > math.MaxInt64/d {
			return Info{}, fmt.Errorf("shape %v has more bytes than can be counted", e.Shape)
		}
		want *= d
		info.Shape[i] = int(d)
	}
	if info.begin < 0 || info.end < info.begin {
		return Info{}, fmt.Errorf("data_offsets %v are not a range", e.Offsets)
	}
	if info.end-info.begin != want {
		return Info{}, fmt.Errorf("%s %v needs %d bytes, data_offsets give it %d", info.DType, e.Shape, want, info.end-info.begin)
	}
	return info, nil
}

// checkLayout sorts the tensors by place and refuses gaps, overlaps and ranges past the data part.
func (f *File) checkLayout(size int64) error {
	slices.SortFunc(f.infos, func(a, b Info) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end), cmp.Compare(a.Name, b.Name))
	})
	at, last := int64(0), ""
	for i := range f.infos {
		t := &f.infos[i]
		switch {
		case t.end > size:
			return fmt.Errorf("tensor %s ends at byte %d of the data, the file has %d: cut off?", quote(t.Name), t.end, size)
		case t.begin < at:
			return fmt.Errorf("tensor %s overlaps tensor %s", quote(t.Name), quote(last))
		case t.begin > at:
			return fmt.Errorf("%d bytes before tensor %s belong to no tensor", t.begin-at, quote(t.Name))
		}
		at, last = t.end, t.Name
	}
	if at != size {
		return fmt.Errorf("%d bytes after the last tensor belong to no tensor", size-at)
	}
	return nil
}

// Infos lists the tensors in the order of their data.
func (f *File) Infos() []Info { return f.infos }

// Metadata is the header's __metadata__, nil without one.
func (f *File) Metadata() map[string]string { return f.metadata }

// ReadFloat32 converts tensor t of the file to float32, row-major, into dst (len(dst) == t.Len()). Types with
// more than 24 bits of precision are rounded to the nearest; F16 and BF16 are exact.
func (f *File) ReadFloat32(dst []float32, t *Info) error {
	if len(dst) != t.Len() {
		return fmt.Errorf("%s: tensor %s has %d elements, room for %d", f.name, quote(t.Name), t.Len(), len(dst))
	}
	if t.DType == F32 && !cpu.IsBigEndian && len(dst) > 0 {
		// The file's bytes are the memory's bytes.
		b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(dst))), t.end-t.begin)
		if _, err := f.data.ReadAt(b, t.begin); err != nil {
			return fmt.Errorf("%s: tensor %s: %w", f.name, quote(t.Name), err)
		}
		return nil
	}
	var chunk [1 << 15]byte // a multiple of every element size; small enough for the second-level cache
	size := t.DType.bytes()
	for at := t.begin; at < t.end; {
		b := chunk[:min(int64(len(chunk)), t.end-at)]
		if _, err := f.data.ReadAt(b, at); err != nil {
			return fmt.Errorf("%s: tensor %s: %w", f.name, quote(t.Name), err)
		}
		n := int64(len(b)) / size
		convert(dst[:n], b, t.DType)
		dst, at = dst[n:], at+int64(len(b))
	}
	return nil
}

// convert turns len(dst) little-endian elements of type d into float32.
func convert(dst []float32, b []byte, d DType) {
	le := binary.LittleEndian
	for i := range dst {
		switch d {
		case F32:
			dst[i] = math.Float32frombits(le.Uint32(b[4*i:]))
		case F16:
			dst[i] = fromHalf(le.Uint16(b[2*i:]))
		case BF16:
			dst[i] = math.Float32frombits(uint32(le.Uint16(b[2*i:])) << 16)
		case F64:
			dst[i] = float32(math.Float64frombits(le.Uint64(b[8*i:])))
		case I64:
			dst[i] = float32(int64(le.Uint64(b[8*i:])))
		case I32:
			dst[i] = float32(int32(le.Uint32(b[4*i:])))
		case I16:
			dst[i] = float32(int16(le.Uint16(b[2*i:])))
		case I8:
			dst[i] = float32(int8(b[i]))
		case U64:
			dst[i] = float32(le.Uint64(b[8*i:]))
		case U32:
			dst[i] = float32(le.Uint32(b[4*i:]))
		case U16:
			dst[i] = float32(le.Uint16(b[2*i:]))
		default: // U8, Bool
			dst[i] = float32(b[i])
		}
	}
}

// fromHalf widens an IEEE 754 binary16: 1 sign bit, 5 exponent bits (bias 15), 10 fraction bits.
func fromHalf(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exponent, fraction := uint32(h>>10)&0x1f, uint32(h)&0x3ff
	switch exponent {
	case 0: // zero and subnormals: fraction * 2^-24, exact in float32
		v := float32(fraction) * 0x1p-24
		return math.Float32frombits(math.Float32bits(v) | sign)
	case 0x1f: // infinity and NaN
		return math.Float32frombits(sign | 0xff<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}

// quote prints a name from an untrusted file: escaped, and never longer than a line.
func quote(name string) string {
	const most = 120
	if len(name) > most {
		return fmt.Sprintf("%q", strings.ToValidUTF8(name[:most], "")+"...")
	}
	return fmt.Sprintf("%q", name)
}

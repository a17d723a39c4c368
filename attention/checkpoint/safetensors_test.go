package checkpoint

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
)

// file puts a header and data together.
func file(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

func parse(b []byte) (*File, error) {
	return NewFile(bytes.NewReader(b), int64(len(b)), "test.safetensors")
}

func TestHeader(t *testing.T) {
	b := file(`{"__metadata__":{"format":"pt"},"b":{"dtype":"F16","shape":[3],"data_offsets":[8,14]},`+
		`"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},"none":{"dtype":"I8","shape":[0,5],"data_offsets":[8,8]},`+
		`"scalar":{"dtype":"BOOL","shape":[],"data_offsets":[14,15]}}  `, 15)
	f, err := parse(b)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, i := range f.Infos() {
		got = append(got, fmt.Sprintf("%s %s %v %d", i.Name, i.DType, i.Shape, i.Len()))
	}
	if want := []string{"a F32 [2 1] 2", "none I8 [0 5] 0", "b F16 [3] 3", "scalar BOOL [] 1"}; !slices.Equal(got, want) {
		t.Errorf("tensors %v, want %v", got, want)
	}
	if f.Metadata()["format"] != "pt" {
		t.Errorf("metadata %v", f.Metadata())
	}
}

// TestLyingHeaders: every lie is found before anything is allocated for it.
func TestLyingHeaders(t *testing.T) {
	one := func(entry string) []byte { return file(`{"w":`+entry+`}`, 8) }
	long := binary.LittleEndian.AppendUint64(nil, math.MaxUint64)
	for name, c := range map[string]struct {
		bytes []byte
		want  string
	}{
		"nothing":           {nil, "too few"},
		"seven bytes":       {long[:7], "too few"},
		"length beyond":     {long, "claims"},
		"length of a bomb":  {append(binary.LittleEndian.AppendUint64(nil, maxHeader+1), make([]byte, maxHeader+1)...), "more than"},
		"no JSON":           {file("PK\x03\x04", 0), "not a JSON object"},
		"a list":            {file("[]", 0), "not a JSON object"},
		"half an object":    {file(`{"w":`, 0), `"w"`},
		"open object":       {file(`{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}`, 8), "not JSON"},
		"more after it":     {file(`{}{}`, 0), "follows"},
		"twice":             {file(`{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8), "twice"},
		"no dtype":          {one(`{"shape":[2],"data_offsets":[0,8]}`), `"w": no dtype`},
		"no shape":          {one(`{"dtype":"F32","data_offsets":[0,8]}`), `"w": no shape`},
		"no offsets":        {one(`{"dtype":"F32","shape":[2]}`), `"w": data_offsets`},
		"one offset":        {one(`{"dtype":"F32","shape":[2],"data_offsets":[8]}`), `"w": data_offsets`},
		"unknown dtype":     {one(`{"dtype":"F4","shape":[2],"data_offsets":[0,8]}`), `"w": dtype "F4"`},
		"wrong dtype":       {one(`{"dtype":"F64","shape":[2],"data_offsets":[0,8]}`), `needs 16 bytes`},
		"negative size":     {one(`{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}`), `"w": dimension 0`},
		"fraction":          {one(`{"dtype":"F32","shape":[2.5],"data_offsets":[0,8]}`), `"w"`},
		"overflow":          {one(`{"dtype":"F32","shape":[2147483647,2147483647,2147483647],"data_offsets":[0,8]}`), "counted"},
		"wraps to fit":      {one(`{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}`), `"w": dimension`},
		"offsets reversed":  {one(`{"dtype":"F32","shape":[2],"data_offsets":[8,0]}`), "not a range"},
		"negative offsets":  {one(`{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}`), "not a range"},
		"beyond the file":   {one(`{"dtype":"F32","shape":[3],"data_offsets":[0,12]}`), `"w" ends at byte 12`},
		"terabytes":         {one(`{"dtype":"F32","shape":[1000000,1000000],"data_offsets":[0,4000000000000]}`), "cut off"},
		"gap":               {one(`{"dtype":"F32","shape":[1],"data_offsets":[4,8]}`), `4 bytes before tensor "w"`},
		"rest":              {one(`{"dtype":"F32","shape":[1],"data_offsets":[0,4]}`), "4 bytes after"},
		"overlap":           {file(`{"v":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8), `"w" overlaps tensor "v"`},
		"same place":        {file(`{"v":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 8), `overlaps`},
		"metadata a number": {file(`{"__metadata__":{"format":1}}`, 0), "__metadata__"},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := parse(c.bytes)
			runtime.ReadMemStats(&after)
			oneLine(t, err, "test.safetensors", c.want)
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<16 {
				t.Errorf("%d bytes allocated to refuse %d", grown, len(c.bytes))
			}
		})
	}
}

// TestHalf checks the corners of binary16 against their definition: 0x7bff is (2-2^-10)*2^15, 0x0400
// the smallest normal 2^-14, 0x03ff the largest subnormal 1023*2^-24, 0x0001 is 2^-24.
func TestHalf(t *testing.T) {
	for bits, want := range map[uint16]float64{
		0x0000: 0, 0x3c00: 1, 0xc000: -2, 0x3555: 0.333251953125, 0x7bff: 65504, 0xfbff: -65504,
		0x0400: 0x1p-14, 0x03ff: 1023 * 0x1p-24, 0x0001: 0x1p-24, 0x8001: -0x1p-24,
		0x7c00: math.Inf(1), 0xfc00: math.Inf(-1),
	} {
		if got := fromHalf(bits); float64(got) != want {
			t.Errorf("%#04x = %v, want %v", bits, got, want)
		}
	}
	if !math.Signbit(float64(fromHalf(0x8000))) || !math.IsNaN(float64(fromHalf(0x7e01))) {
		t.Error("negative zero or NaN is lost")
	}
}

func TestSafetensorsRoundTrip(t *testing.T) {
	tensors := []Tensor{
		{"x", []int{2, 3}, []float32{1, -2, 0, float32(math.Inf(1)), 1e-40, 3.5}},
		{"scalar \"quoted\"", nil, []float32{7}},
		{"empty", []int{0, 4}, nil},
		{"long", []int{20_000}, slices.Repeat([]float32{0.1, -9}, 10_000)},
	}
	var b bytes.Buffer
	if err := WriteSafetensors(&b, tensors); err != nil {
		t.Fatal(err)
	}
	if n := binary.LittleEndian.Uint64(b.Bytes()); n%8 != 0 {
		t.Errorf("the data starts at byte %d, not at a multiple of 8", n+8)
	}
	f, err := parse(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range tensors {
		i := slices.IndexFunc(f.Infos(), func(i Info) bool { return i.Name == want.Name })
		if i < 0 {
			t.Fatalf("%s is lost", want.Name)
		}
		got := make([]float32, f.Infos()[i].Len())
		if err := f.ReadFloat32(got, &f.Infos()[i]); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want.Data) || !slices.Equal(f.Infos()[i].Shape, want.Shape) {
			t.Errorf("%s comes back as %v %v", want.Name, f.Infos()[i].Shape, got)
		}
	}
	for _, bad := range [][]Tensor{
		{{"x", []int{2}, []float32{1}}},
		{{"x", []int{1}, []float32{1}}, {"x", []int{1}, []float32{1}}},
		{{"__metadata__", []int{1}, []float32{1}}},
	} {
		if err := WriteSafetensors(&b, bad); err == nil {
			t.Errorf("%v was written", bad)
		}
	}
}

package reports

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"unsafe"

	"misroute/pipeline/result"
)

// A run read from its folder in pieces gives the report of the run held in memory.
func TestReadWeeklyIsNewWeekly(t *testing.T) {
	for name, f := range map[string]*result.Folder{"planted": planted(), "week": crumb(1, 310), "sweep": crumbSweep(1, 310)} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := result.WriteFolder(dir, f); err != nil {
				t.Fatal(err)
			}
			whole, err := result.ReadFolder(dir)
			if err != nil {
				t.Fatal(err)
			}
			o := Options{WithText: true, Threshold: 0.7}
			read, err := ReadWeekly(dir, o)
			if err != nil {
				t.Fatal(err)
			}
			held, err := NewWeekly(whole, o)
			if err != nil {
				t.Fatal(err)
			}
			a, b, c, d := weeklyForms(t, held)
			e, g, h, i := weeklyForms(t, read)
			if a != e || b != g || c != h || d != i {
				t.Error("the two differ")
			}
			if len(read.Caused) > 0 && read.Caused[0].MessageID == "" {
				t.Error("the examples lack what is read for them alone")
			}
		})
	}
}

func TestReadWeeklyRefuses(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadWeekly(dir, Options{}); err == nil {
		t.Error("no run, no error")
	}
}

// What is kept of a message is what bounds a run: it does not grow by accident.
func TestLineIsSmall(t *testing.T) {
	if n := unsafe.Sizeof(line{}); n > 96 {
		t.Errorf("a line has %d bytes, want at most 96", n)
	}
	if n := unsafe.Sizeof(otherReading{}); n > 88 {
		t.Errorf("a reading has %d bytes, want at most 88", n)
	}
}

// Of many messages, some are sampled for the temperature: it stays what it was, within its own error.
func TestTemperatureOfASample(t *testing.T) {
	f := crumb(3, 3000)
	all := weekly(t, f, Options{})
	// A ledger that says so many messages that one in five is a sample.
	f.Run.Ledger.Labelled = 5 * mostSampled / int64(len(f.Run.Queues))
	some := weekly(t, f, Options{})
	if all.Calibration == nil || some.Calibration == nil || some.Calibration.Temperature == all.Calibration.Temperature {
		t.Fatalf("temperatures %+v and %+v: nothing was sampled", all.Calibration, some.Calibration)
	}
	if a, b := float64(all.Calibration.Temperature), float64(some.Calibration.Temperature); math.Abs(a-b) > 0.25*a {
		t.Errorf("temperature %v of all, %v of one in five", a, b)
	}
	var numbers map[string]any
	_, _, _, form := weeklyForms(t, some)
	if err := json.Unmarshal([]byte(form), &numbers); err != nil || numbers["total"] == nil {
		t.Error(fmt.Sprint("the other numbers: ", err))
	}
}

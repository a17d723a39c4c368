package text

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// The table has 73 pairs of charset label and encoding, each as a long and a short message. The
// best library measured got 120 bodies and 52 subjects right; the short texts in no charset at all
// cannot all be told.
func TestCharsetTable(t *testing.T) {
	f, err := os.Open(shared(t, "zoo/charsets.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	bodies, subjects, total := 0, 0, 0
	seen := make(map[string]bool)
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var c struct {
			Name, Encoding string
			Label          string `json:"charset_label"`
			Raw            []byte `json:"raw_base64"`
			WantBody       string `json:"want_body"`
			WantSubject    string `json:"want_subject"`
		}
		if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		total++
		got, rej := extract(c.Raw, Options{Quotes: QuotesKeep})
		if rej != nil {
			t.Errorf("%s: %v", c.Name, rej)
			continue
		}
		if squeeze(got.Body) == squeeze(c.WantBody) {
			bodies++
		} else {
			t.Logf("%s body %.60q want %.60q", c.Name, got.Body, c.WantBody)
		}
		if key := c.Label + "/" + c.Encoding; !seen[key] {
			seen[key] = true
			if squeeze(got.Subject) == squeeze(c.WantSubject) {
				subjects++
			} else {
				t.Logf("%s subject %q want %q", c.Name, got.Subject, c.WantSubject)
			}
		}
	}
	t.Logf("%d of %d bodies, %d of %d subjects", bodies, total, subjects, len(seen))
	if total != 146 || bodies < 140 || subjects < 70 {
		t.Errorf("%d of %d bodies (want 140 of 146), %d of %d subjects (want 70 of 73)", bodies, total, subjects, len(seen))
	}
}

func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

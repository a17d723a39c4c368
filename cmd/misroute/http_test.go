package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"misroute/pipeline/result"
)

// A deployed router is evaluated like a model; a message that it fails on is a reject.
func TestEvalOverHTTP(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct{ Inputs string }
		if r.URL.Path != "/predict" || json.NewDecoder(r.Body).Decode(&q) != nil {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if strings.Contains(q.Inputs, "voucher") {
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		io.WriteString(w, `[{"label":"refunds","score":0.7},{"label":"general feedback","score":0.3}]`)
	}))
	defer srv.Close()
	out := filepath.Join(t.TempDir(), "run")
	var stdout, stderr bytes.Buffer
	code := run([]string{"misroute", "eval", "--model", srv.URL + "/predict", "--out", out, "--progress", "none",
		filepath.Join("..", "..", "testdata", "crumb", "2026-W47.mbox")}, &stdout, &stderr)
	f, err := result.ReadFolder(out)
	if err != nil {
		t.Fatalf("exit %d: %v\n%s", code, err, &stderr)
	}
	if len(f.Rejects) == 0 || f.Rejects[0].Code != "score.router_failed" || !strings.Contains(f.Rejects[0].Detail, "422") {
		t.Errorf("%d rejects, first %+v; want the messages with a voucher, with the status", len(f.Rejects), f.Rejects[:min(1, len(f.Rejects))])
	}
	if len(f.Rows)+len(f.Rejects) != 310 || f.Rows[0].Prediction != "refunds" || f.Run.Cap != 0 {
		t.Errorf("%d rows and %d rejects, first prediction %q, cap %d", len(f.Rows), len(f.Rejects), f.Rows[0].Prediction, f.Run.Cap)
	}
	// More than one in a hundred was rejected.
	if code != exitRejected {
		t.Errorf("exit code %d, want %d\n%s", code, exitRejected, &stderr)
	}
}

package reports

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
)

// The page of one message in a browser: at both widths, light and dark.
func TestExplainInABrowser(t *testing.T) {
	ctx := browser(t)
	e := withAttention(examined())
	e.Shares = &TokenShares{Positions: e.Attention.Positions, Shares: make([]float32, 3*len(e.Tokens)), Bias: make([]float32, 3)}
	for i := range e.Shares.Shares {
		e.Shares.Shares[i] = float32(i%7) - 3
	}
	e.MessageID = hostile[0]
	var b bytes.Buffer
	if err := explained(t, e, Options{WithText: true}).HTML(&b); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Write(b.Bytes())
	}))
	defer server.Close()
	for _, width := range []int64{360, 1280} {
		for _, scheme := range []string{"light", "dark"} {
			look(t, ctx, server.URL+"/explain", "explain "+scheme, width, scheme)
		}
	}
}

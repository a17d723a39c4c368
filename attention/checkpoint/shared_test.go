package checkpoint

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// shared finds a file of recorded numbers under MISROUTE_SHARED, which may be relative to the
// module's root. Unset, the test is skipped; set and without the file, it fails.
func shared(t testing.TB, elem ...string) string {
	t.Helper()
	root := os.Getenv("MISROUTE_SHARED")
	if root == "" {
		t.Skip("MISROUTE_SHARED is not set")
	}
	if !filepath.IsAbs(root) {
		root = filepath.Join("..", "..", root) // this package stands two folders below the module's root
	}
	path := filepath.Join(append([]string{root, "data"}, elem...)...)
	if !exists(path) {
		t.Fatalf("MISROUTE_SHARED is set and %s is missing", filepath.Join(elem...))
	}
	return path
}

func decodeFile(t testing.TB, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

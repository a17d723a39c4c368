package main

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/rogpeppe/go-internal/testscript"
)

// TestBucketScripts runs the verbs against a store in this process: one script a story, in
// testdata/bucket. The bucket is called mail.
//
//	put FILE|FOLDER KEY      stores a file, or the files of a folder
//	get KEY FOLDER           fetches the objects below KEY
//	keys PREFIX              lists keys on standard output
//	holds FOLDER NAME|PATH   fails unless a file of that name (and of that file's content) is below it
//	secretless FOLDER        fails where a file holds a credential
//	damage FOLDER            turns a bit in every weight file below it
//	fault KIND [N|KEY]       makes the store misbehave: cut N (objects break off after N bytes each), busy N
//	                         (the next N requests get 503), dropped N (the next N uploads break off),
//	                         changed (another content after the first bytes),
//	                         lost (the export breaks off, and from then on nobody may read),
//	                         refuse KEY (no writing there), deny, region, none
func TestBucketScripts(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", "..", "testdata"))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	stores := map[string]*scriptStore{} // by working folder
	of := func(ts *testscript.TestScript) *scriptStore {
		mu.Lock()
		defer mu.Unlock()
		return stores[ts.Getenv("WORK")]
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "bucket"),
		Setup: func(e *testscript.Env) error {
			s, err := newScriptStore()
			if err != nil {
				return err
			}
			e.Defer(s.Close)
			mu.Lock()
			stores[e.WorkDir] = s
			mu.Unlock()
			home := filepath.Join(e.WorkDir, "home")
			if err := os.Mkdir(home, 0o700); err != nil {
				return err
			}
			for name, v := range map[string]string{
				"CRUMB": filepath.Join(root, "crumb"), "MODELS": filepath.Join(root, "models"), "NO_COLOR": "1", "HOME": home,
				"MISROUTE_CACHE": filepath.Join(home, "cache"), "AWS_ENDPOINT_URL": s.URL, "AWS_EC2_METADATA_DISABLED": "true",
				"AWS_ACCESS_KEY_ID": "AKIASCRIPTSCRIPT", "AWS_SECRET_ACCESS_KEY": "scr1pts3cr3t/scr1pts3cr3t", "AWS_SESSION_TOKEN": "scr1ptt0ken",
			} {
				e.Setenv(name, v)
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
			"put": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(of(ts).put(ts.MkAbs(args[0]), args[1]))
			},
			"get": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(of(ts).get(args[0], ts.MkAbs(args[1])))
			},
			"keys": func(ts *testscript.TestScript, _ bool, args []string) {
				keys, err := of(ts).keys(args[0])
				ts.Check(err)
				ts.Check(ts.Exec("printf", strings.ReplaceAll(strings.Join(keys, "\n"), "%", "%%")))
			},
			"fault": func(ts *testscript.TestScript, _ bool, args []string) {
				of(ts).fault(args[0], append(args[1:], "")[0])
			},
			"damage": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(damage(ts.MkAbs(args[0])))
			},
			"holds": func(ts *testscript.TestScript, neg bool, args []string) {
				found, err := holds(ts.MkAbs(args[0]), filepath.Base(args[1]), args[1])
				ts.Check(err)
				if found == neg {
					ts.Fatalf("%s holds %s: %v", args[0], args[1], found)
				}
			},
			"secretless": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(secretless(ts.MkAbs(args[0])))
			},
		},
	})
}

// damage turns a bit in every weight file below a folder.
func damage(dir string) error {
	return filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".safetensors" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		data[len(data)/2] ^= 1
		return os.WriteFile(path, data, 0o600)
	})
}

// holds says whether a file of that name is below a folder; where a whole path is given, also whether
// it has that file's content.
func holds(dir, name, like string) (found bool, err error) {
	var want []byte
	if filepath.IsAbs(like) {
		if want, err = os.ReadFile(like); err != nil {
			return false, err
		}
	}
	err = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.Name() != name {
			return err
		}
		got, err := os.ReadFile(path)
		found = found || want == nil || bytes.Equal(got, want)
		return err
	})
	return found, err
}

// secretless looks for credentials in every file below a folder.
func secretless(dir string) error {
	return filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		for _, secret := range []string{"AKIASCRIPTSCRIPT", "scr1pts3cr3t", "scr1ptt0ken"} {
			if bytes.Contains(data, []byte(secret)) {
				return fmt.Errorf("%s holds the credential %s", path, secret)
			}
		}
		return err
	})
}

const scriptBucket = "mail"

// scriptStore is a store that misbehaves on demand.
type scriptStore struct {
	*httptest.Server
	backend *s3mem.Backend
	inner   http.Handler

	mu   sync.Mutex
	kind string
	key  string
	n    int
}

func newScriptStore() (*scriptStore, error) {
	s := &scriptStore{backend: s3mem.New()}
	if err := s.backend.CreateBucket(scriptBucket); err != nil {
		return nil, err
	}
	s.inner = gofakes3.New(s.backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	s.Server = httptest.NewServer(s)
	return s, nil
}

func (s *scriptStore) fault(kind, arg string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kind, s.key = kind, arg
	s.n, _ = strconv.Atoi(arg)
}

func (s *scriptStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	kind, key, n := s.kind, s.key, s.n
	if kind == "busy" || kind == "dropped" && r.Method == http.MethodPut {
		s.n--
	}
	s.mu.Unlock()
	object := r.Method == http.MethodGet && r.URL.RawQuery == ""
	_, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if object && r.Header.Get("If-Match") != "" { // the fake does not know it
		if o, err := s.backend.HeadObject(scriptBucket, name); err == nil && fmt.Sprintf("%q", hex.EncodeToString(o.Hash)) != r.Header.Get("If-Match") {
			refuse(w, http.StatusPreconditionFailed, "PreconditionFailed", "")
			return
		}
	}
	switch {
	case kind == "busy" && n > 0:
		refuse(w, http.StatusServiceUnavailable, "SlowDown", "")
	case kind == "dropped" && r.Method == http.MethodPut && n > 0:
		io.CopyN(io.Discard, r.Body, 1000)
		panic(http.ErrAbortHandler)
	case kind == "deny", kind == "refuse" && r.Method == http.MethodPut && strings.HasSuffix(name, key):
		refuse(w, http.StatusForbidden, "AccessDenied", "")
	case kind == "region":
		refuse(w, http.StatusBadRequest, "AuthorizationHeaderMalformed", "eu-west-1")
	case kind == "cut" && object:
		s.inner.ServeHTTP(&cutting{ResponseWriter: w, n: n}, r)
	case kind == "changed" && object && strings.HasSuffix(name, ".mbox"):
		s.inner.ServeHTTP(&cutting{w, 100_000, func() { s.change(name) }}, r)
	case kind == "lost" && object && strings.HasSuffix(name, ".mbox"):
		s.inner.ServeHTTP(&cutting{w, 300_000, func() { s.fault("deny", "") }}, r)
	default:
		s.inner.ServeHTTP(w, r)
	}
}

func refuse(w http.ResponseWriter, status int, code, region string) {
	if region != "" {
		w.Header().Set("X-Amz-Bucket-Region", region)
	}
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>refused</Message><Region>%s</Region></Error>", code, region)
}

// cutting breaks the connection after n bytes.
type cutting struct {
	http.ResponseWriter
	n    int
	then func()
}

func (c *cutting) Write(p []byte) (int, error) {
	if len(p) < c.n {
		c.n -= len(p)
		return c.ResponseWriter.Write(p)
	}
	c.ResponseWriter.Write(p[:c.n])
	c.ResponseWriter.(http.Flusher).Flush()
	if c.then != nil {
		c.then()
	}
	panic(http.ErrAbortHandler)
}

func (s *scriptStore) change(key string) {
	data := []byte("From nobody\nSubject: another\n\nmail\n")
	s.store(key, data)
}

func (s *scriptStore) store(key string, data []byte) error {
	_, err := s.backend.PutObject(scriptBucket, key, map[string]string{"Last-Modified": time.Now().UTC().Format(http.TimeFormat)}, bytes.NewReader(data), int64(len(data)), nil)
	return err
}

// put stores a file, or the files of a folder.
func (s *scriptStore) put(path, key string) error {
	return filepath.WalkDir(path, func(file string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name := key
		if rel, err := filepath.Rel(path, file); err == nil && rel != "." {
			name += "/" + filepath.ToSlash(rel)
		}
		return s.store(name, data)
	})
}

func (s *scriptStore) keys(prefix string) ([]string, error) {
	list, err := s.backend.ListBucket(scriptBucket, &gofakes3.Prefix{HasPrefix: true, Prefix: prefix}, gofakes3.ListBucketPage{})
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, o := range list.Contents {
		keys = append(keys, o.Key)
	}
	slices.Sort(keys)
	return keys, nil
}

func (s *scriptStore) get(key, dir string) error {
	keys, err := s.keys(key + "/")
	if err != nil {
		return err
	}
	for _, k := range keys {
		o, err := s.backend.GetObject(scriptBucket, k, nil)
		if err != nil {
			return err
		}
		data, err := io.ReadAll(o.Contents)
		if err != nil {
			return err
		}
		path := filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(k, key+"/")))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// TestForgetOld: copies of what an address held before go after a day, the one in use never.
func TestForgetOld(t *testing.T) {
	cache := t.TempDir()
	now := time.Now()
	for name, age := range map[string]time.Duration{"used": 48 * time.Hour, "fresh": time.Hour, "old": 25 * time.Hour} {
		dir := filepath.Join(cache, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if err := forgetOld(cache, filepath.Join(cache, "used"), now); err != nil {
		t.Fatal(err)
	}
	var left []string
	entries, err := os.ReadDir(cache)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := "fresh used"; strings.Join(left, " ") != want || err != nil {
		t.Errorf("left: %s, want %s (%v)", left, want, err)
	}
}

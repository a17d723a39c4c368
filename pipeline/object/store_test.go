package object

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/minio/minio-go/v7"
)

const (
	testKey    = "AKIATESTTESTTEST"
	testSecret = "s3cr3t/s3cr3t+s3cr3t"
	testToken  = "t0ken//t0ken=="
)

// fakeStore is a store in this process. fault sees every request first and returns true where it has
// answered it.
type fakeStore struct {
	*httptest.Server
	backend *s3mem.Backend
	mu      sync.Mutex
	fault   func(w http.ResponseWriter, r *http.Request) bool
	asked   []string // method, path and Range of each request
}

func newFakeStore(t testing.TB) *fakeStore {
	t.Helper()
	f := &fakeStore{backend: s3mem.New()}
	if err := f.backend.CreateBucket("mail"); err != nil {
		t.Fatal(err)
	}
	inner := gofakes3.New(f.backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		fault := f.fault
		f.asked = append(f.asked, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+r.Header.Get("Range")))
		f.mu.Unlock()
		if fault != nil && fault(w, r) {
			return
		}
		if f.differs(r) {
			answer(w, http.StatusPreconditionFailed, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold", "")
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(f.Close)
	// Nothing of the machine's own settings counts.
	for _, name := range []string{"AWS_PROFILE", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_CA_BUNDLE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_ENDPOINT_URL", f.URL)
	t.Setenv("AWS_ACCESS_KEY_ID", testKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", testSecret)
	t.Setenv("AWS_SESSION_TOKEN", testToken)
	// The client's own waits between two requests are for stores far away.
	unit := minio.DefaultRetryUnit
	minio.DefaultRetryUnit = time.Microsecond
	t.Cleanup(func() { minio.DefaultRetryUnit = unit })
	return f
}

// differs does what the fake leaves out: a GET may ask for a certain content only.
func (f *fakeStore) differs(r *http.Request) bool {
	want := r.Header.Get("If-Match")
	if r.Method != http.MethodGet || want == "" {
		return false
	}
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	o, err := f.backend.HeadObject(bucket, key)
	return err != nil || fmt.Sprintf("%q", hex.EncodeToString(o.Hash)) != want
}

func (f *fakeStore) setFault(fault func(w http.ResponseWriter, r *http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

func (f *fakeStore) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.asked...)
}

// put stores an object, past the front door.
func (f *fakeStore) put(t testing.TB, key string, data []byte) {
	t.Helper()
	if _, err := f.backend.PutObject("mail", key, map[string]string{"Last-Modified": time.Now().UTC().Format(http.TimeFormat)}, bytes.NewReader(data), int64(len(data)), nil); err != nil {
		t.Fatal(err)
	}
}

// answer is an error as S3 writes it.
func answer(w http.ResponseWriter, status int, code, message, region string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>%s</Message><Region>%s</Region></Error>", code, message, region)
}

// cutAfter lets n bytes of an answer through and then breaks the connection.
type cutAfter struct {
	http.ResponseWriter
	n int
}

func (c *cutAfter) Write(p []byte) (int, error) {
	if len(p) >= c.n {
		c.ResponseWriter.Write(p[:c.n])
		c.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	c.n -= len(p)
	return c.ResponseWriter.Write(p)
}

func openStore(t testing.TB) *Store {
	t.Helper()
	s, err := Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.wait = func(ctx context.Context, _ int) error { return ctx.Err() }
	return s
}

// openBucket waits at the end of the test for what the bucket still reads ahead.
func openBucket(t *testing.T, s *Store) *Bucket {
	t.Helper()
	b := s.Bucket(t.Context(), "mail")
	t.Cleanup(b.ahead.running.Wait)
	return b
}

// noise is n bytes that do not repeat.
func noise(n int) []byte {
	r := rand.NewChaCha8([32]byte{7})
	b := make([]byte, n)
	r.Read(b)
	return b
}

// cutting cuts the first answers to GETs of objects after so many bytes each.
func (f *fakeStore) cutting(after ...int) {
	inner := gofakes3.New(f.backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	var mu sync.Mutex
	f.setFault(func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		if r.Method != http.MethodGet || r.URL.RawQuery != "" || len(after) == 0 || f.differs(r) {
			mu.Unlock()
			return false
		}
		n := after[0]
		after = after[1:]
		mu.Unlock()
		inner.ServeHTTP(&cutAfter{w, n}, r)
		return true
	})
}

// TestCutReadGoesOn: a stream that breaks off is resumed at its offset, and every byte comes once.
func TestCutReadGoesOn(t *testing.T) {
	f := newFakeStore(t)
	data := noise(3 << 20)
	f.put(t, "week.mbox", data)
	f.cutting(1<<20, 1, 700_000)
	s := openStore(t)
	file, err := openBucket(t, s).Open("week.mbox")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	got, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, data) {
		t.Fatalf("%d bytes came, and not the %d that are stored", len(got), len(data))
	}
	want := []string{"GET /mail/week.mbox", "GET /mail/week.mbox bytes=1048576-", "GET /mail/week.mbox bytes=1048577-", "GET /mail/week.mbox bytes=1748577-"}
	if asked := f.requests(); strings.Join(asked, "\n") != strings.Join(want, "\n") {
		t.Errorf("requests:\n%s\nwant:\n%s", strings.Join(asked, "\n"), strings.Join(want, "\n"))
	}
}

// TestCutForEver: cuts without a byte between them are an error at last, with the offset.
func TestCutForEver(t *testing.T) {
	f := newFakeStore(t)
	f.put(t, "week.mbox", noise(1000))
	f.setFault(func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Length", "1000")
		w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
		w.Header().Set("ETag", `"1"`)
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	s := openStore(t)
	file, _ := openBucket(t, s).Open("week.mbox")
	_, err := io.ReadAll(file)
	if err == nil || !strings.Contains(err.Error(), "s3://mail/week.mbox") || !strings.Contains(err.Error(), "cut 6 times at byte 0") {
		t.Fatalf("got %v", err)
	}
	if n := len(f.requests()); n != readTries {
		t.Errorf("%d requests, want %d", n, readTries)
	}
}

// TestStalledRead: a connection that stays open and brings nothing is given up for a new one.
func TestStalledRead(t *testing.T) {
	f := newFakeStore(t)
	data := noise(100_000)
	f.put(t, "week.mbox", data)
	first := true
	var mu sync.Mutex
	f.setFault(func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		was := first
		first = false
		mu.Unlock()
		if !was {
			return false
		}
		o, err := f.backend.HeadObject("mail", "week.mbox")
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Length", "100000")
		w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
		w.Header().Set("ETag", fmt.Sprintf("%q", hex.EncodeToString(o.Hash)))
		w.Write(data[:5000])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return true
	})
	s := openStore(t)
	s.stall = 100 * time.Millisecond
	file, _ := openBucket(t, s).Open("week.mbox")
	got, err := io.ReadAll(file)
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
}

// TestChangedWhileRead: what comes after a cut must be of the same object.
func TestChangedWhileRead(t *testing.T) {
	for _, matches := range []bool{true, false} { // a store that knows If-Match, and one that does not
		f := newFakeStore(t)
		data := noise(1 << 20)
		f.put(t, "week.mbox", data)
		f.cutting(500_000)
		s := openStore(t)
		file, _ := openBucket(t, s).Open("week.mbox")
		if _, err := io.ReadFull(file, make([]byte, 400_000)); err != nil {
			t.Fatal(err)
		}
		f.put(t, "week.mbox", data[1:])
		if !matches {
			f.setFault(func(w http.ResponseWriter, r *http.Request) bool { r.Header.Del("If-Match"); return false })
		}
		_, err := io.ReadAll(file)
		if !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), "s3://mail/week.mbox: changed while it was read") {
			t.Errorf("If-Match %v: got %v", matches, err)
		}
	}
}

// TestReadAt: any part of an object can be read, and reading on asks for nothing anew.
func TestReadAt(t *testing.T) {
	f := newFakeStore(t)
	data := noise(2 << 20)
	f.put(t, "a.zip", data)
	file, _ := openBucket(t, openStore(t)).Open("a.zip")
	at := file.(io.ReaderAt)
	for _, c := range []struct{ off, n int }{{1_900_000, 4096}, {0, 10}, {10, 1000}, {2000, 30}, {len(data) - 5, 5}} {
		got := make([]byte, c.n)
		if n, err := at.ReadAt(got, int64(c.off)); n != c.n || err != nil {
			t.Fatalf("ReadAt(%d, %d) = %d, %v", c.off, c.n, n, err)
		}
		if !bytes.Equal(got, data[c.off:c.off+c.n]) {
			t.Fatalf("other bytes at %d", c.off)
		}
	}
	if n, err := at.ReadAt(make([]byte, 10), int64(len(data))-5); n != 5 || err != io.EOF {
		t.Errorf("over the end: %d, %v; want 5, EOF", n, err)
	}
	if n, err := at.ReadAt(make([]byte, 10), 1<<40); n != 0 || err != io.EOF {
		t.Errorf("beyond the end: %d, %v; want 0, EOF", n, err)
	}
	// Three jumps: to the directory, to the front, to the end (twice, the first read having ended there).
	if n := len(f.requests()); n > 5 {
		t.Errorf("%d requests: %s", n, f.requests())
	}
}

// TestBusy: 503 SlowDown is waited out; one that stays is an error that says so.
func TestBusy(t *testing.T) {
	f := newFakeStore(t)
	f.put(t, "week.mbox", []byte("hello"))
	busy := 4
	var mu sync.Mutex
	f.setFault(func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if busy--; busy >= 0 {
			answer(w, http.StatusServiceUnavailable, "SlowDown", "Please reduce your request rate.", "")
			return true
		}
		return false
	})
	s := openStore(t)
	file, _ := openBucket(t, s).Open("week.mbox")
	if got, err := io.ReadAll(file); string(got) != "hello" || err != nil {
		t.Fatalf("%q, %v", got, err)
	}
	mu.Lock()
	busy = 1000
	mu.Unlock()
	_, err := s.Stat(t.Context(), Address{"mail", "week.mbox"})
	if err == nil || !strings.Contains(err.Error(), "goes on answering 503") {
		t.Errorf("got %v", err)
	}
}

// TestCancelledRead: a cancelled context ends waiting at once and is itself the error.
func TestCancelledRead(t *testing.T) {
	f := newFakeStore(t)
	f.put(t, "week.mbox", noise(1000))
	ctx, cancel := context.WithCancel(t.Context())
	f.setFault(func(w http.ResponseWriter, r *http.Request) bool {
		cancel()
		answer(w, http.StatusServiceUnavailable, "SlowDown", "", "")
		return true
	})
	minio.DefaultRetryUnit = time.Hour
	s := openStore(t)
	file, _ := s.Bucket(ctx, "mail").Open("week.mbox")
	if _, err := io.ReadAll(file); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}

// TestErrors: what is wrong is said in one line with the place and what to do.
func TestErrors(t *testing.T) {
	f := newFakeStore(t)
	f.put(t, "week.mbox", []byte("x"))
	xml := func(status int, code, region string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			answer(w, status, code, "the key "+testKey+" and "+testSecret, region)
			return true
		}
	}
	for _, c := range []struct {
		name, address string
		fault         func(http.ResponseWriter, *http.Request) bool
		want          []string
		kind          error
	}{
		{"no object", "s3://mail/nothing", nil, []string{"s3://mail/nothing", "nothing is stored there", "check the key"}, fs.ErrNotExist},
		{"no bucket", "s3://nowhere/week.mbox", nil, []string{`has no bucket "nowhere"`, "check its name"}, fs.ErrNotExist},
		{"denied", "s3://mail/week.mbox", xml(403, "AccessDenied", ""), []string{"access is denied to AWS_ACCESS_KEY_ID", "s3:GetObject"}, fs.ErrPermission},
		{"bad key", "s3://mail/week.mbox", xml(403, "InvalidAccessKeyId", ""), []string{"does not accept the credentials of AWS_ACCESS_KEY_ID (InvalidAccessKeyId)"}, fs.ErrPermission},
		{"region", "s3://mail/week.mbox", xml(400, "AuthorizationHeaderMalformed", "eu-west-1"), []string{"not in the region us-east-1, it is in eu-west-1", "set AWS_REGION=eu-west-1"}, nil},
		{"moved", "s3://mail/week.mbox", xml(301, "PermanentRedirect", ""), []string{"not in the region us-east-1", "set AWS_REGION"}, nil},
		{"archived", "s3://mail/week.mbox", xml(403, "InvalidObjectState", ""), []string{"archived", "restore it"}, nil},
		{"other", "s3://mail/week.mbox", xml(409, "Strange", ""), []string{"answers 409 Strange", "(hidden)"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			f.setFault(c.fault)
			a, err := Parse(c.address)
			if err != nil {
				t.Fatal(err)
			}
			file, _ := openStore(t).Bucket(t.Context(), a.Bucket).Open(a.Key)
			_, err = io.ReadAll(file)
			if err == nil {
				t.Fatal("no error")
			}
			for _, w := range append(c.want, "s3://"+a.Bucket) {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
			if strings.ContainsRune(err.Error(), '\n') || strings.Contains(err.Error(), testKey) || strings.Contains(err.Error(), testSecret) {
				t.Errorf("not one line without secrets: %q", err)
			}
			if c.kind != nil && !errors.Is(err, c.kind) {
				t.Errorf("%v is no %v", err, c.kind)
			}
		})
	}
	t.Run("HEAD in another region", func(t *testing.T) {
		f.setFault(func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("X-Amz-Bucket-Region", "eu-west-1")
			w.WriteHeader(http.StatusBadRequest)
			return true
		})
		if _, err := openStore(t).Stat(t.Context(), Address{"mail", "x"}); err == nil || !strings.Contains(err.Error(), "set AWS_REGION=eu-west-1") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("no answer", func(t *testing.T) {
		s := openStore(t)
		f.Close()
		_, err := s.Stat(t.Context(), Address{"mail", "x"})
		if err == nil || !strings.Contains(err.Error(), "no connection to "+s.Name()) || strings.Contains(err.Error(), "http://") {
			t.Errorf("got %v", err)
		}
	})
}

// TestFolder: prefixes are folders, and keys that no folder can hold are not passed over.
func TestFolder(t *testing.T) {
	f := newFakeStore(t)
	for _, key := range []string{"weeks/b.mbox", "weeks/a.mbox", "weeks/inner/c.eml", "weeks/", "other/x", "weeks.mbox"} {
		data := []byte(key)
		if strings.HasSuffix(key, "/") {
			data = nil
		}
		f.put(t, key, data)
	}
	s := openStore(t)
	b := openBucket(t, s)
	for _, name := range []string{"weeks", "weeks/"} {
		st, err := b.Stat(name)
		if err != nil || !st.IsDir() || st.Name() != "weeks" {
			t.Fatalf("Stat(%q) = %v, %v", name, st, err)
		}
		list, err := b.ReadDir(name)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range list {
			got = append(got, fs.FormatDirEntry(e))
		}
		if want := "- a.mbox - b.mbox d inner/"; strings.Join(got, " ") != want {
			t.Errorf("ReadDir(%q): %s, want %s", name, strings.Join(got, " "), want)
		}
	}
	if st, err := b.Stat("weeks.mbox"); err != nil || st.IsDir() || st.Size() != 10 {
		t.Errorf("Stat of an object: %v, %v", st, err)
	}
	if _, err := b.Stat("week"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("part of a name is not a folder: %v", err)
	}
	if _, err := s.Bucket(t.Context(), "none").Stat("weeks"); err == nil || !strings.Contains(err.Error(), `has no bucket "none"`) {
		t.Errorf("got %v", err)
	}
	f.put(t, "odd//x", []byte("1"))
	if _, err := b.ReadDir("odd"); err == nil || !strings.Contains(err.Error(), "is no file of a folder") {
		t.Errorf("got %v", err)
	}
	for pattern, want := range map[string]string{
		"weeks/*.mbox": "[s3://mail/weeks/a.mbox s3://mail/weeks/b.mbox]",
		"w*/[b-z]*":    "[s3://mail/weeks/b.mbox]",
		"weeks/":       "[s3://mail/weeks/]",
	} {
		got, err := s.Match(t.Context(), Address{"mail", pattern})
		if err != nil || fmt.Sprint(got) != want {
			t.Errorf("Match(%q) = %v, %v; want %s", pattern, got, err, want)
		}
	}
	if _, err := s.Match(t.Context(), Address{"mail", "weeks/*.gz"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// TestManyObjects: a listing of more than one page is whole. 1000 is the most a page holds.
func TestManyObjects(t *testing.T) {
	f := newFakeStore(t)
	for i := range 2345 {
		f.put(t, fmt.Sprintf("folder/%05d.eml", i), []byte("x"))
	}
	list, err := openBucket(t, openStore(t)).ReadDir("folder")
	if err != nil || len(list) != 2345 {
		t.Fatalf("%d objects, %v", len(list), err)
	}
}

// TestFetchAndPut: files go up and come down whole, checked by what was stored beside them.
func TestFetchAndPut(t *testing.T) {
	f := newFakeStore(t)
	s := openStore(t)
	dir := t.TempDir()
	for _, n := range []int{1, 1 << 20, 20 << 20} { // the last one goes in parts
		data := noise(n)
		from := filepath.Join(dir, fmt.Sprint(n))
		if err := os.WriteFile(from, data, 0o644); err != nil {
			t.Fatal(err)
		}
		to := Address{"mail", fmt.Sprintf("model/%d", n)}
		if err := s.Put(t.Context(), from, to); err != nil {
			t.Fatal(err)
		}
		info, err := s.Stat(t.Context(), to)
		if err != nil || info.Bytes != int64(n) {
			t.Fatalf("%+v, %v", info, err)
		}
		sum := sha256.Sum256(data)
		got, err := s.Fetch(t.Context(), to, info, from+".back")
		if err != nil || got != hex.EncodeToString(sum[:]) {
			t.Errorf("%d bytes: %s, %v", n, got, err)
		}
		if st, err := os.Stat(from + ".back"); err != nil || st.Mode().Perm() != 0o600 || st.Size() != int64(n) {
			t.Errorf("%v, %v", st, err)
		}
	}
	f.put(t, "model/empty", nil)
	if _, err := s.Fetch(t.Context(), Address{"mail", "model/empty"}, Info{}, filepath.Join(dir, "empty")); err != nil {
		t.Error(err)
	}
	info, err := s.Stat(t.Context(), Address{"mail", "model/1048576"})
	if err != nil {
		t.Fatal(err)
	}
	f.put(t, "model/1048576", noise(1<<20-1))
	to := filepath.Join(dir, "changed")
	if _, err := s.Fetch(t.Context(), Address{"mail", "model/1048576"}, info, to); !errors.Is(err, ErrChanged) {
		t.Errorf("an object that changed since it was listed: %v", err)
	}
	if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) {
		t.Error("half a file was left")
	}
}

// TestDamaged: bytes that changed on the way are noticed.
func TestDamaged(t *testing.T) {
	f := newFakeStore(t)
	s := openStore(t)
	from := filepath.Join(t.TempDir(), "w")
	data := noise(5000)
	if err := os.WriteFile(from, data, 0o644); err != nil {
		t.Fatal(err)
	}
	at := Address{"mail", "model/w"}
	if err := s.Put(t.Context(), from, at); err != nil {
		t.Fatal(err)
	}
	info, err := s.Stat(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	f.setFault(func(w http.ResponseWriter, r *http.Request) bool {
		bad := bytes.Clone(data)
		bad[77] ^= 1
		w.Header().Set("ETag", fmt.Sprintf("%q", info.ETag))
		w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
		w.Write(bad)
		return true
	})
	if _, err := s.Fetch(t.Context(), at, info, from+".back"); err == nil || !strings.Contains(err.Error(), "its MD5 differs") {
		t.Errorf("got %v", err)
	}
}

// TestPublish: the marker comes last, an older one goes first, and an upload that is cut leaves none.
func TestPublish(t *testing.T) {
	f := newFakeStore(t)
	s := openStore(t)
	dir := t.TempDir()
	for _, name := range []string{"a", "marker", "z"} {
		if err := os.WriteFile(filepath.Join(dir, name), noise(100_000), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, ".partial"), 0o755); err != nil {
		t.Fatal(err)
	}
	to := Address{"mail", "runs/w"}
	if err := s.Publish(t.Context(), dir, to, "marker"); err != nil {
		t.Fatal(err)
	}
	want := "HEAD /mail/runs/w/marker, PUT /mail/runs/w/a, PUT /mail/runs/w/z, PUT /mail/runs/w/marker"
	if got := strings.Join(f.requests(), ", "); got != want {
		t.Errorf("requests: %s, want %s", got, want)
	}
	before := len(f.requests())
	if err := s.Publish(t.Context(), dir, to, "marker"); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(f.requests()[before:], ", "); !strings.HasPrefix(got, "HEAD /mail/runs/w/marker, DELETE /mail/runs/w/marker, PUT") {
		t.Errorf("over an older run: %s", got)
	}
	f.setFault(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/z") {
			io.CopyN(io.Discard, r.Body, 1000)
			panic(http.ErrAbortHandler)
		}
		return false
	})
	err := s.Publish(t.Context(), dir, to, "marker")
	if err == nil || !strings.Contains(err.Error(), "s3://mail/runs/w/z: no connection") {
		t.Errorf("got %v", err)
	}
	f.setFault(nil)
	if _, err := s.Stat(t.Context(), to.In("marker")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after a cut upload the marker is there: %v", err)
	}
	// A cut that does not last is nobody's business.
	cuts := 2
	var mu sync.Mutex
	f.setFault(func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if r.Method == http.MethodPut && cuts > 0 {
			cuts--
			io.CopyN(io.Discard, r.Body, 1000)
			panic(http.ErrAbortHandler)
		}
		return false
	})
	if err := s.Publish(t.Context(), dir, to, "marker"); err != nil {
		t.Error(err)
	}
}

// TestReadAhead: the small objects of a folder are read several at a time, each once, and come in order.
func TestReadAhead(t *testing.T) {
	f := newFakeStore(t)
	want := map[string]string{}
	for i := range 100 {
		for _, folder := range []string{"w/", "w/050/"} {
			key := fmt.Sprintf("%s%03d.eml", folder, i)
			want[key] = strings.Repeat(key, 100)
			f.put(t, key, []byte(want[key]))
		}
	}
	big := noise(2 << 20)
	f.put(t, "w/050.mbox", big)
	want["w/050.mbox"] = string(big)
	var mu sync.Mutex
	now, most := 0, 0
	f.setFault(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.RawQuery == "" {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(2 * time.Millisecond)
			mu.Lock()
			now--
			mu.Unlock()
		}
		return false
	})
	b := openBucket(t, openStore(t))
	got := 0
	var walk func(dir string)
	walk = func(dir string) {
		list, err := b.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range list {
			key := dir + "/" + e.Name()
			if e.IsDir() {
				walk(key)
				continue
			}
			if i%7 == 3 { // what is passed over is no hindrance
				continue
			}
			file, err := b.Open(key)
			if err != nil {
				t.Fatal(err)
			}
			data, err := io.ReadAll(file)
			if err != nil || string(data) != want[key] {
				t.Fatalf("%s: %d bytes, %v", key, len(data), err)
			}
			got++
		}
	}
	walk("w")
	if got < 160 {
		t.Errorf("%d files", got)
	}
	// Two folders, one in the other, and the object that is waited for; and of each folder one that was passed
	// over, of which the store may learn late. For the same reason requests can still be under way here.
	mu.Lock()
	if limit := 2*aheadObjects + 1 + 2; most < 2 || most > limit {
		t.Errorf("up to %d requests at a time, want 2 to %d", most, limit)
	}
	mu.Unlock()
	seen := map[string]int{}
	for _, r := range f.requests() {
		if strings.HasPrefix(r, "GET /mail/w/") {
			seen[r]++
		}
	}
	for r, n := range seen {
		if n > 1 {
			t.Errorf("%d times %s", n, r)
		}
	}
}

// TestReadAheadFails: what goes wrong ahead is said when its object is opened.
func TestReadAheadFails(t *testing.T) {
	f := newFakeStore(t)
	for i := range 10 {
		f.put(t, fmt.Sprintf("w/%d.eml", i), []byte("x"))
	}
	b := openBucket(t, openStore(t))
	if _, err := b.ReadDir("w"); err != nil {
		t.Fatal(err)
	}
	f.setFault(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/5.eml") {
			answer(w, http.StatusForbidden, "AccessDenied", "", "")
			return true
		}
		return false
	})
	for i := range 10 {
		file, err := b.Open(fmt.Sprintf("w/%d.eml", i))
		if (i == 5) != errors.Is(err, fs.ErrPermission) {
			t.Fatalf("%d: %v", i, err)
		}
		if err == nil {
			if data, err := io.ReadAll(file); string(data) != "x" || err != nil {
				t.Fatalf("%d: %q, %v", i, data, err)
			}
		}
	}
}

// BenchmarkFolder reads 200 objects of 4 KB from a store 20 ms away, as a folder and one by one.
func BenchmarkFolder(b *testing.B) {
	f := newFakeStore(b)
	for i := range 200 {
		f.put(b, fmt.Sprintf("w/%03d.eml", i), noise(4096))
	}
	f.setFault(func(http.ResponseWriter, *http.Request) bool {
		time.Sleep(20 * time.Millisecond)
		return false
	})
	for _, listed := range []bool{true, false} {
		b.Run(fmt.Sprintf("ahead=%v", listed), func(b *testing.B) {
			for b.Loop() {
				bucket := openStore(b).Bucket(b.Context(), "mail")
				if listed {
					if _, err := bucket.ReadDir("w"); err != nil {
						b.Fatal(err)
					}
				}
				for i := range 200 {
					file, err := bucket.Open(fmt.Sprintf("w/%03d.eml", i))
					if err != nil {
						b.Fatal(err)
					}
					if n, err := io.Copy(io.Discard, file); n != 4096 || err != nil {
						b.Fatal(n, err)
					}
				}
			}
		})
	}
}

package object

import (
	"context"
	"crypto/tls"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Store is where buckets are. Its methods may be called from several goroutines.
type Store struct {
	set    settings
	client *minio.Core
	creds  *credentials.Credentials
	who    string                                        // where the credentials are from; empty: there are none
	wait   func(ctx context.Context, failures int) error // before going on after so many failures in a row
	stall  time.Duration                                 // a body that brings nothing for so long is as good as cut
}

const (
	// Each request is tried so often, with up to a second between two tries: half a minute of a busy
	// store, or a proxy's restart, is nobody's failure.
	requestTries = 10
	// A read that is cut goes on; so many cuts in a row without one byte between them are an outage.
	readTries = 6
	// The first wait between two cuts; it doubles, up to the longest, and is drawn at random below that.
	firstWait, longestWait = 200 * time.Millisecond, 10 * time.Second
)

// Open finds the store of the environment: AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL (default: AWS),
// AWS_REGION, AWS_CA_BUNDLE, and credentials from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the
// files in ~/.aws (AWS_PROFILE), or the role of the container or machine. It asks the store nothing.
func Open(ctx context.Context) (*Store, error) {
	set, err := readSettings()
	if err != nil {
		return nil, err
	}
	s := &Store{set: set, wait: backOff, stall: time.Minute}
	if s.creds, s.who, err = set.identify(ctx); err != nil {
		return nil, err
	}
	secure := set.endpoint.Scheme == "https"
	transport, err := minio.DefaultTransport(secure)
	if err != nil {
		return nil, err
	}
	if secure {
		roots, err := set.certificates()
		if err != nil {
			return nil, err
		}
		if roots != nil {
			transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
		}
	}
	s.client, err = minio.NewCore(set.endpoint.Host, &minio.Options{
		Creds: s.creds, Secure: secure, Region: set.region, MaxRetries: requestTries, Transport: through(transport, set.endpoint.Hostname()),
	})
	if err != nil {
		return nil, &Error{What: "AWS_ENDPOINT_URL: " + Redact(err.Error(), s.secrets()...)}
	}
	return s, nil
}

// asStored asks for the bytes as they are stored. Google's store unpacks .gz objects for whoever does not
// say that he takes them packed, and then neither lengths nor offsets hold.
type asStored struct{ http.RoundTripper }

func through(t http.RoundTripper, host string) http.RoundTripper {
	if host == "storage.googleapis.com" {
		return asStored{t}
	}
	return t
}

func (t asStored) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Accept-Encoding", "gzip")
	return t.RoundTripper.RoundTrip(r)
}

// Name is the store's host, for messages and to tell stores apart.
func (s *Store) Name() string { return s.set.endpoint.Host }

// secrets are what no text may show.
func (s *Store) secrets() []string {
	v, err := s.creds.GetWithContext(s.client.CredContext())
	if err != nil {
		return nil
	}
	return []string{v.SecretAccessKey, v.SessionToken, v.AccessKeyID}
}

// backOff waits after so many failures in a row (from 1), a time drawn below a bound that doubles: whoever
// was cut off at the same moment comes back at different ones.
func backOff(ctx context.Context, failures int) error {
	bound := min(firstWait<<min(failures-1, 10), longestWait)
	timer := time.NewTimer(bound/2 + rand.N(bound/2))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A watchdog cancels a request whose body brings nothing for too long. It runs only while somebody
// waits for bytes: a reader may take its time between two reads.
type watchdog struct {
	mu     sync.Mutex
	timer  *time.Timer
	cancel context.CancelFunc
}

func (w *watchdog) start(limit time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer == nil {
		w.timer = time.AfterFunc(limit, w.cancel)
	} else {
		w.timer.Reset(limit)
	}
}

func (w *watchdog) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
}

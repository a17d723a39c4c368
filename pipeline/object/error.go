package object

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/minio/minio-go/v7"
)

// ErrChanged says that an object is not the one any more that was begun to be read.
var ErrChanged = errors.New("changed while it was read")

// An Error says in one line where something went wrong, what, and what to do. It unwraps to
// fs.ErrNotExist, fs.ErrPermission, ErrChanged or the context's error where it is one of these.
type Error struct {
	Where string // an address; may be empty
	What  string
	Do    string
	// Temporary: nothing that was asked for is wrong; later it may well go.
	Temporary bool
	kind      error
}

func (e *Error) Error() string {
	s := e.What
	if e.Where != "" {
		s = e.Where + ": " + s
	}
	if e.Do != "" {
		s += "; " + e.Do
	}
	return s
}

func (e *Error) Unwrap() error { return e.kind }

// explain turns an error of the client into an Error without secrets.
func (s *Store) explain(where Address, err error) error {
	var known *Error
	var local *fs.PathError
	if err == nil || errors.As(err, &known) || errors.As(err, &local) {
		return err
	}
	e := &Error{Where: where.String()}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		e.What, e.kind = err.Error(), err
		if errors.Is(err, context.DeadlineExceeded) {
			e.What, e.Temporary = "no answer in time", true
		}
		return e
	}
	var answer minio.ErrorResponse
	if errors.As(err, &answer) && answer.StatusCode != 0 {
		s.explainAnswer(e, where, answer)
	} else {
		s.explainNetwork(e, err)
	}
	e.What, e.Do = Redact(e.What, s.secrets()...), Redact(e.Do, s.secrets()...)
	return e
}

// explainAnswer says what the store meant.
func (s *Store) explainAnswer(e *Error, where Address, r minio.ErrorResponse) {
	host := s.set.endpoint.Host
	switch r.Code {
	case "NoSuchBucket", "InvalidBucketName":
		e.Where = scheme + where.Bucket
		e.What, e.kind = fmt.Sprintf("%s has no bucket %q", host, where.Bucket), fs.ErrNotExist
		e.Do = "check its name"
		if !s.set.custom {
			e.Do += ", and AWS_ENDPOINT_URL if the store is not AWS"
		}
		return
	case "NoSuchKey", "NotFound":
		e.What, e.kind = "nothing is stored there", fs.ErrNotExist
		e.Do = "check the key"
		return
	case "PreconditionFailed":
		e.What, e.kind = ErrChanged.Error(), ErrChanged
		e.Do = "start over with an object that stays as it is"
		return
	case "AuthorizationHeaderMalformed", "PermanentRedirect", "InvalidRegion", "IllegalLocationConstraintException", "TemporaryRedirect":
		s.explainRegion(e, r)
		return
	case "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "ExpiredTokenException", "UnrecognizedClientException", "InvalidSecurity":
		e.What, e.kind = fmt.Sprintf("%s does not accept the credentials of %s (%s)", host, s.who, r.Code), fs.ErrPermission
		e.Do = "check them, or log in again"
		return
	case "RequestTimeTooSkewed":
		e.What, e.Do = "this machine's clock is wrong by minutes", "set it"
		return
	case "InvalidObjectState":
		e.What, e.Do = "the object is archived", "restore it from its storage class first"
		return
	case "NoSuchUpload":
		e.What, e.Do = "the upload was taken away while it ran", "try again"
		return
	}
	switch {
	case r.StatusCode == http.StatusMovedPermanently, r.StatusCode == http.StatusBadRequest && r.Region != "" && r.Region != s.set.region:
		s.explainRegion(e, r) // an answer to HEAD has no body, and so no code
	case r.StatusCode == http.StatusForbidden || r.StatusCode == http.StatusUnauthorized:
		e.What, e.kind = "access is denied", fs.ErrPermission
		if s.who == "" {
			e.Do = "there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
		} else {
			e.What += " to " + s.who
			e.Do = "it needs s3:GetObject and s3:ListBucket to read, s3:PutObject and s3:DeleteObject to write a run"
		}
	case r.StatusCode >= 500 || r.StatusCode == http.StatusTooManyRequests || r.StatusCode == http.StatusRequestTimeout:
		e.What, e.Temporary = fmt.Sprintf("%s goes on answering %d %s", host, r.StatusCode, r.Code), true
		e.Do = "try again later"
	default:
		e.What = fmt.Sprintf("%s answers %d %s", host, r.StatusCode, r.Code)
		if r.Message != "" && r.Message != r.Code {
			e.What += ": " + strings.Join(strings.Fields(r.Message), " ")
		}
	}
}

func (s *Store) explainRegion(e *Error, r minio.ErrorResponse) {
	e.What, e.Do = "the bucket is in another region", "set AWS_REGION to the bucket's"
	if s.set.region != "" {
		e.What = "the bucket is not in the region " + s.set.region
	}
	if r.Region != "" {
		e.What, e.Do = e.What+", it is in "+r.Region, "set AWS_REGION="+r.Region
	}
}

// explainNetwork says why there was no answer. The address of a request stays out of the text: its
// query is nobody's business.
func (s *Store) explainNetwork(e *Error, err error) {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var dns *net.DNSError
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var record tls.RecordHeaderError
	host := s.set.endpoint.Host
	switch {
	case errors.As(err, &dns):
		e.What, e.Do = fmt.Sprintf("the name %s is not known", dns.Name), "check AWS_ENDPOINT_URL, AWS_REGION and the network"
	case errors.As(err, &authority):
		e.What, e.Do = host+" has a certificate of an authority that is not known here", "name the authority's file with AWS_CA_BUNDLE"
	case errors.As(err, &name):
		e.What, e.Do = host+" has a certificate for other names", "check AWS_ENDPOINT_URL"
	case errors.As(err, &record), strings.Contains(err.Error(), "HTTP response to HTTPS"):
		e.What, e.Do = host+" does not speak TLS", "write AWS_ENDPOINT_URL with http://"
	default:
		e.Temporary = true
		e.What, e.Do = fmt.Sprintf("no connection to %s that lasts: %v", host, err), "check AWS_ENDPOINT_URL and the network"
	}
}

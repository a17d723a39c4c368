// Package object reads and writes what stands in a bucket of an S3-compatible store (AWS, Google Cloud
// Storage in its S3 mode, R2, MinIO): exports as a file system whose files stream, and whole folders
// that are fetched or put file by file.
//
// A read that is cut off goes on where it was cut, and only with the same object (its ETag): an object
// that changes while it is read is an error. Where the store is and who asks it come from the usual
// AWS environment and files; credentials appear in no error.
package object

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"
)

const scheme = "s3://"

// IsAddress says whether a path means something in a bucket.
func IsAddress(path string) bool { return strings.HasPrefix(path, scheme) }

// Address is a place in a bucket. Key is taken as it is written, without any decoding, as the AWS
// tools do; empty is the whole bucket.
type Address struct{ Bucket, Key string }

// Parse reads s3://BUCKET/KEY. An address with credentials in it is refused, and not repeated.
func Parse(s string) (Address, error) {
	rest, ok := strings.CutPrefix(s, scheme)
	if !ok {
		return Address{}, fmt.Errorf("%s: not an address in a bucket; write s3://BUCKET/KEY", s)
	}
	bucket, key, _ := strings.Cut(rest, "/")
	if strings.Contains(bucket, "@") || strings.Contains(bucket, ":") || Redact(key) != key {
		return Address{}, fmt.Errorf("%s...: an address with credentials or a signature in it; write s3://BUCKET/KEY and leave credentials to the environment (AWS_ACCESS_KEY_ID, AWS_PROFILE)", scheme)
	}
	if bucket == "" || strings.ContainsAny(bucket, "*?[ ") {
		return Address{}, fmt.Errorf("%s: no bucket is named; write s3://BUCKET/KEY", s)
	}
	return Address{bucket, key}, nil
}

func (a Address) String() string { return scheme + a.Bucket + "/" + a.Key }

// In is the address of name below a, as in a folder.
func (a Address) In(name string) Address {
	return Address{a.Bucket, inFolder(a.Key, name)}
}

// Base is the last part of the key, or the bucket.
func (a Address) Base() string { return path.Base("/" + a.Bucket + "/" + a.Key) }

func inFolder(folder, name string) string {
	if folder == "" || strings.HasSuffix(folder, "/") {
		return folder + name
	}
	return folder + "/" + name
}

// signature is a part of a signed address that lets others in.
var signature = regexp.MustCompile(`(?i)(X-(?:Amz|Goog)-(?:Signature|Credential|Security-Token)|Signature|AWSAccessKeyId|GoogleAccessId)=[^&\s"'<>]*`)

// Redact takes what is secret out of a text: the values of signatures, user and password of a URL, and
// the given secrets wherever they stand.
func Redact(s string, secrets ...string) string {
	s = signature.ReplaceAllString(s, "${1}="+hidden)
	for _, secret := range secrets {
		if len(secret) >= 4 { // shorter ones are no secret, and would tear words apart
			s = strings.ReplaceAll(s, secret, hidden)
			s = strings.ReplaceAll(s, url.QueryEscape(secret), hidden)
		}
	}
	return withoutUser(s)
}

const hidden = "(hidden)"

// withoutUser hides user:password@ of addresses in a text.
func withoutUser(s string) string {
	for at := 0; ; {
		i := strings.Index(s[at:], "://")
		if i < 0 {
			return s
		}
		from := at + i + len("://")
		end := from + strings.IndexAny(s[from:]+" ", "/ \"'<>?#\n")
		if user := strings.LastIndexByte(s[from:end], '@'); user >= 0 {
			s = s[:from] + hidden + s[from+user:]
			end = from + len(hidden)
		}
		at = end
	}
}

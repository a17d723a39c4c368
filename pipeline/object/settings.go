package object

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
	"gopkg.in/ini.v1"
)

// settings say where the store is and who asks it.
type settings struct {
	endpoint *url.URL
	custom   bool // not AWS itself
	region   string
	profile  string
	asked    bool // the profile was asked for by name
	caFile   string
}

const (
	awsEndpoint = "https://s3.amazonaws.com"
	// What other stores than AWS take for "any region": MinIO's default, and an alias of R2's auto.
	anyRegion = "us-east-1"
)

// readSettings reads the AWS environment, and of the AWS config file the profile's region and endpoint.
func readSettings() (settings, error) {
	s := settings{profile: os.Getenv("AWS_PROFILE"), caFile: os.Getenv("AWS_CA_BUNDLE")}
	if s.asked = s.profile != ""; !s.asked {
		s.profile = "default"
	}
	config, err := profileOf(s.profile)
	if err != nil {
		return s, err
	}
	endpoint := first(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"), config["endpoint_url"])
	s.custom = endpoint != ""
	s.region = first(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), config["region"])
	if s.caFile == "" {
		s.caFile = config["ca_bundle"]
	}
	if s.custom && s.region == "" {
		s.region = anyRegion
	}
	if !s.custom {
		endpoint = awsEndpoint
	}
	s.endpoint, err = url.Parse(endpoint)
	if err == nil && (s.endpoint.Scheme != "http" && s.endpoint.Scheme != "https" || s.endpoint.Host == "") {
		err = errors.New("no http:// or https:// address")
	}
	switch {
	case err != nil: // the text of the error repeats the value, which may hold a password
		return s, &Error{What: "AWS_ENDPOINT_URL is no address of a store", Do: "write it like https://minio.example:9000"}
	case s.endpoint.User != nil || s.endpoint.RawQuery != "":
		return s, &Error{What: "AWS_ENDPOINT_URL has credentials in it", Do: "give them as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"}
	case strings.Trim(s.endpoint.Path, "/") != "":
		return s, &Error{What: fmt.Sprintf("AWS_ENDPOINT_URL has the path %s", s.endpoint.Path), Do: "the store alone stands there; the bucket belongs into s3://BUCKET/KEY"}
	}
	return s, nil
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// profileOf reads the settings of a profile in the AWS config file; none where there is no file.
func profileOf(profile string) (map[string]string, error) {
	path := os.Getenv("AWS_CONFIG_FILE")
	if path == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, nil // a container without a home has no such file
		}
		path = filepath.Join(home, ".aws", "config")
	}
	file, err := ini.LooseLoad(path)
	if err != nil {
		return nil, fileError(path, err)
	}
	name := "profile " + profile
	if profile == "default" && !file.HasSection(name) {
		name = profile
	}
	if !file.HasSection(name) {
		return nil, nil
	}
	return file.Section(name).KeysHash(), nil
}

// fileError says that a file of the AWS tools cannot be used. A parser's message may repeat a line,
// and with it a secret: it is left out.
func fileError(path string, err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return &Error{What: fmt.Sprintf("%s: %v", path, pe.Err)}
	}
	return &Error{What: path + " is not written as the AWS tools write it", Do: "check it with aws configure list"}
}

// identify chooses the source of credentials, in the order of the AWS tools: environment, files, the
// role of the container or machine. Without any the requests are not signed, which is enough for a
// public bucket; who says which it was.
func (s *settings) identify(ctx context.Context) (creds *credentials.Credentials, who string, err error) {
	id, secret := os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY")
	if (id == "") != (secret == "") {
		return nil, "", &Error{What: "only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set", Do: "set both, or neither"}
	}
	if id != "" {
		return credentials.NewStaticV4(id, secret, os.Getenv("AWS_SESSION_TOKEN")), "AWS_ACCESS_KEY_ID", nil
	}
	files := credentials.New(&credentials.FileAWSCredentials{Profile: s.profile})
	v, err := files.GetWithContext(&credentials.CredContext{Context: ctx, Client: http.DefaultClient})
	switch {
	case err == nil && v.AccessKeyID != "":
		return files, "profile " + s.profile, nil
	case s.asked && err != nil:
		return nil, "", &Error{What: "profile " + s.profile + " gives no credentials: " + profileError(err), Do: "check AWS_PROFILE and ~/.aws, or log in again"}
	case s.asked:
		return nil, "", &Error{What: "profile " + s.profile + " has no credentials", Do: "aws configure export-credentials --format env prints what to set instead"}
	}
	if role := s.role(); role != nil {
		creds := credentials.New(role)
		if v, err := creds.GetWithContext(&credentials.CredContext{Context: ctx}); err == nil && v.AccessKeyID != "" {
			return creds, "the role of this machine", nil
		} else if inContainer() {
			return nil, "", &Error{What: "the role of this container gives no credentials: " + profileError(err), Do: "check the role that is bound to it"}
		}
	}
	return credentials.NewStatic("", "", "", credentials.SignatureAnonymous), "", nil
}

// profileError is the text of a failure to get credentials, without what a file or a server said.
func profileError(err error) string {
	var pe *os.PathError
	var ne net.Error
	switch {
	case errors.As(err, &pe):
		return pe.Path + ": " + pe.Err.Error()
	case errors.As(err, &ne):
		return "no answer"
	case err != nil && strings.Contains(err.Error(), "section"):
		return "there is no such profile"
	case err != nil && strings.Contains(err.Error(), "SSO token"):
		return "its login has expired (aws sso login)"
	}
	return "it is not complete"
}

// inContainer says whether the container was given a role of its own.
func inContainer() bool {
	return first(os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE"), os.Getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI"), os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")) != ""
}

// role asks the container's or the machine's metadata service; nil where there is none to ask.
func (s *settings) role() *credentials.IAM {
	role := &credentials.IAM{Region: s.region, Client: &http.Client{Timeout: 20 * time.Second}}
	if inContainer() {
		return role
	}
	if strings.EqualFold(os.Getenv("AWS_EC2_METADATA_DISABLED"), "true") {
		return nil
	}
	endpoint := os.Getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT")
	if endpoint == "" {
		endpoint = credentials.DefaultIAMRoleEndpoint
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil
	}
	host := u.Host
	if u.Port() == "" {
		host = net.JoinHostPort(u.Hostname(), "80")
	}
	// The service is on this very machine: where it does not answer at once, there is none.
	conn, err := net.DialTimeout("tcp", host, time.Second)
	if err != nil {
		return nil
	}
	conn.Close()
	role.Endpoint, role.Client = endpoint, &http.Client{Timeout: 5 * time.Second}
	return role
}

// certificates of the store, beside the system's.
func (s *settings) certificates() (*x509.CertPool, error) {
	if s.caFile == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(s.caFile)
	if err != nil {
		return nil, &Error{What: "AWS_CA_BUNDLE: " + profileError(err)}
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, &Error{What: "AWS_CA_BUNDLE: no certificate in " + s.caFile}
	}
	return pool, nil
}

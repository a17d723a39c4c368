package object

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for in, want := range map[string]Address{
		"s3://mail/weeks/a.mbox": {"mail", "weeks/a.mbox"},
		"s3://mail/weeks/":       {"mail", "weeks/"},
		"s3://mail":              {"mail", ""},
		"s3://mail/a%20b?c#d":    {"mail", "a%20b?c#d"}, // a key as it is, not a URL
	} {
		if got, err := Parse(in); err != nil || got != want {
			t.Errorf("Parse(%q) = %v, %v", in, got, err)
		}
	}
	for _, in := range []string{"s3://", "s3:///x", "https://mail/x", "s3://AKIA:topsecret@mail/x", "s3://mail/x?X-Amz-Signature=topsecret", "s3://ma*l/x"} {
		_, err := Parse(in)
		if err == nil || strings.Contains(err.Error(), "topsecret") || strings.ContainsRune(err.Error(), '\n') {
			t.Errorf("Parse(%q): %v", in, err)
		}
	}
	for in, want := range map[string]string{"s3://mail/w/a": "a", "s3://mail/w/": "w", "s3://mail": "mail"} {
		if a, _ := Parse(in); a.Base() != want {
			t.Errorf("%s: base %q", in, a.Base())
		}
	}
}

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"Get http://h/b/k?X-Amz-Signature=abc&x=1: EOF":         "Get http://h/b/k?X-Amz-Signature=(hidden)&x=1: EOF",
		"k?x-amz-security-token=abc%2F":                         "k?x-amz-security-token=(hidden)",
		"dial http://user:pass@host:9000/b: refused":            "dial http://(hidden)@host:9000/b: refused",
		"the secret is pa/ss+word, or pa%2Fss%2Bword in a link": "the secret is (hidden), or (hidden) in a link",
		"a plain text with a@b.example":                         "a plain text with a@b.example",
		"s3://mail/weeks/a@b.eml":                               "s3://mail/weeks/a@b.eml",
	} {
		if got := Redact(in, "pa/ss+word", ""); got != want {
			t.Errorf("Redact(%q) = %q, want %q", in, got, want)
		}
	}
}

// FuzzParse: an address that is taken is written as it was read, and none that lets others in is repeated.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"s3://mail/weeks/a.mbox", "s3://mail", "s3://u:p@mail/k", "s3://mail/k?X-Amz-Signature=ab", "s3://", "file"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := Parse(s)
		if err == nil && a.String() != s && a.String() != s+"/" {
			t.Errorf("%q became %q", s, a)
		}
		if once := Redact(s); Redact(once) != once {
			t.Errorf("%q, redacted again: %q", once, Redact(once))
		}
		_ = a.Base()
		_, _ = rangeOf(s, 5)
	})
}

// TestSettings: the environment is read as the AWS tools read it.
func TestSettings(t *testing.T) {
	newFakeStore(t)
	home := os.Getenv("HOME")
	if err := os.Mkdir(filepath.Join(home, ".aws"), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(home, ".aws", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("config", "[default]\nregion = eu-central-1\n[profile minio]\nregion = here\nendpoint_url = http://minio.example:9000\n")
	write("credentials", "[default]\naws_access_key_id = AKIADEFAULT\naws_secret_access_key = defaultdefault\n[minio]\naws_access_key_id = AKIAMINIO\naws_secret_access_key = miniominio\n")
	for _, c := range []struct {
		name                   string
		env                    map[string]string
		host, region, who, key string
	}{
		{"environment", map[string]string{"AWS_ENDPOINT_URL": "https://r2.example", "AWS_REGION": "auto"}, "r2.example", "auto", "AWS_ACCESS_KEY_ID", testKey},
		{"S3 wins", map[string]string{"AWS_ENDPOINT_URL": "https://a.example", "AWS_ENDPOINT_URL_S3": "https://b.example"}, "b.example", "eu-central-1", "AWS_ACCESS_KEY_ID", testKey},
		{"AWS", map[string]string{"AWS_ENDPOINT_URL": "", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, "s3.amazonaws.com", "eu-central-1", "profile default", "AKIADEFAULT"},
		{"profile", map[string]string{"AWS_ENDPOINT_URL": "", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_PROFILE": "minio"}, "minio.example:9000", "here", "profile minio", "AKIAMINIO"},
		{"nobody", map[string]string{"AWS_ENDPOINT_URL": "https://a.example", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "HOME": t.TempDir()}, "a.example", anyRegion, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, v := range c.env {
				t.Setenv(name, v)
			}
			s, err := Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			v, err := s.creds.GetWithContext(s.client.CredContext())
			if s.Name() != c.host || s.set.region != c.region || s.who != c.who || v.AccessKeyID != c.key || err != nil {
				t.Errorf("%s in %q as %q (%s, %v)", s.Name(), s.set.region, s.who, v.AccessKeyID, err)
			}
		})
	}
	for name, c := range map[string]struct {
		env  map[string]string
		want string
	}{
		"half a key":       {map[string]string{"AWS_SECRET_ACCESS_KEY": ""}, "only one of AWS_ACCESS_KEY_ID"},
		"no profile":       {map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_PROFILE": "nobody"}, "there is no such profile"},
		"password in it":   {map[string]string{"AWS_ENDPOINT_URL": "https://u:topsecret@h.example"}, "credentials in it"},
		"no address":       {map[string]string{"AWS_ENDPOINT_URL": "u:topsecret@:h.example"}, "is no address"},
		"bucket in it":     {map[string]string{"AWS_ENDPOINT_URL": "https://h.example/mail"}, "has the path /mail"},
		"no certificate":   {map[string]string{"AWS_ENDPOINT_URL": "https://h.example", "AWS_CA_BUNDLE": "/nowhere.pem"}, "AWS_CA_BUNDLE: /nowhere.pem"},
		"unreadable files": {map[string]string{"AWS_CONFIG_FILE": filepath.Join(home, "broken")}, "not written as the AWS tools"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(home, "broken"), []byte("[default]\ntopsecret\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			for name, v := range c.env {
				t.Setenv(name, v)
			}
			_, err := Open(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "topsecret") {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestRoles: without keys and files, the container's role counts, and then the machine's.
func TestRoles(t *testing.T) {
	newFakeStore(t)
	const answer = `{"Code":"Success","AccessKeyId":"AKIAROLE","SecretAccessKey":"rolesecret","Token":"roletoken","Expiration":"2100-01-01T00:00:00Z"}`
	meta := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.Path {
		case "PUT /latest/api/token":
			fmt.Fprint(w, "session")
		case "GET /latest/meta-data/iam/security-credentials/":
			fmt.Fprint(w, "reader")
		case "GET /latest/meta-data/iam/security-credentials/reader", "GET /container":
			fmt.Fprint(w, answer)
		default:
			http.NotFound(w, r)
		}
	}))
	defer meta.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	for _, env := range []map[string]string{
		{"AWS_EC2_METADATA_DISABLED": "", "AWS_EC2_METADATA_SERVICE_ENDPOINT": meta.URL},
		{"AWS_CONTAINER_CREDENTIALS_FULL_URI": meta.URL + "/container"},
	} {
		for name, v := range env {
			t.Setenv(name, v)
		}
		s, err := Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		v, err := s.creds.GetWithContext(s.client.CredContext())
		if err != nil || v.AccessKeyID != "AKIAROLE" || v.SessionToken != "roletoken" || s.who != "the role of this machine" {
			t.Errorf("%v: %s as %q, %v", env, v.AccessKeyID, s.who, err)
		}
		if err := s.explain(Address{"mail", "k"}, errors.New("rolesecret, roletoken")); strings.Contains(err.Error(), "role") {
			t.Errorf("shown: %v", err)
		}
	}
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", meta.URL+"/nothing")
	if _, err := Open(t.Context()); err == nil || !strings.Contains(err.Error(), "the role of this container gives no credentials") {
		t.Errorf("got %v", err)
	}
}

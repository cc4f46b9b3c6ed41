package webhook

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

const (
	first  = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	second = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
)

func parse(t *testing.T, text string) []Secret {
	t.Helper()
	secrets, err := ParseSecrets(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return secrets
}

// The example is that of the libraries of Standard Webhooks.
func TestSign(t *testing.T) {
	at := time.Unix(1614265330, 999)
	const known = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	for _, tt := range []struct{ name, file, want string }{
		{"one", first + "\n", known},
		{"rotating", "# new\n" + first + "\n\n  # old\n\t" + second + "\r\n", known + " v1,"},
	} {
		got, err := Sign(parse(t, tt.file), "msg_p5jXN8AQM9LWM0D4loKWxJek", at, strings.NewReader(`{"test": 2432232314}`))
		if err != nil || !strings.HasPrefix(got, tt.want) || strings.Count(got, "v1,") != strings.Count(tt.want, "v1,") {
			t.Errorf("%s: got %q, %v, want %q", tt.name, got, err, tt.want)
		}
	}
	if _, err := Sign(parse(t, first), "id", at, iotest.ErrReader(io.ErrNoProgress)); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a body that cannot be read: got %v, want its error", err)
	}
}

func TestParseSecretsRefuses(t *testing.T) {
	long := base64.StdEncoding.EncodeToString(make([]byte, longest+1))
	for _, tt := range []struct{ name, file, want string }{
		{"nothing", "# nothing\n\n", "there is no secret in it"},
		{"no prefix", first + "\nMfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n", "line 2: the secret does not begin with whsec_"},
		{"no base64", "\nwhsec_MfKQ9r8GKYqrTwj!UPD8ILPZIo2LaLaSw", "line 2: the secret is not valid base64"},
		{"short", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZI", "line 1: the secret has 18 bytes, not 24 to 64"},
		{"long", "whsec_" + long, "line 1: the secret has 65 bytes"},
		{"a line without end", first + "\n" + strings.Repeat("x", maxLine+1), "line 2: it is too long"},
		{"a file without end", strings.Repeat(first+"\n", maxSecrets+1), "line 101: there are more than 100 secrets"},
	} {
		got, err := ParseSecrets(strings.NewReader(tt.file))
		if got != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, %v, want the error %q", tt.name, got, err, tt.want)
		}
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	for _, form := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if got := fmt.Sprintf(form, parse(t, first)); strings.Contains(got, "MfKQ") || !strings.Contains(got, "whsec_") {
			t.Errorf("%s: got %q, want no secret", form, got)
		}
	}
}

func FuzzParseSecrets(f *testing.F) {
	f.Add(first + "\n# x\n" + second)
	f.Add("whsec_\x00")
	f.Fuzz(func(t *testing.T, file string) {
		secrets, err := ParseSecrets(strings.NewReader(file))
		if (err == nil) != (len(secrets) > 0) {
			t.Errorf("got %d secrets, %v, want secrets or an error", len(secrets), err)
		}
		if err != nil {
			for line := range strings.Lines(file) {
				secret := strings.TrimPrefix(strings.TrimSpace(line), prefix)
				if len(secret) >= shortest && strings.Contains(err.Error(), secret) && !strings.Contains(hint, secret) {
					t.Errorf("got %q, want no part of the file", err)
				}
			}
		}
	})
}

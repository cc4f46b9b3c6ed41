// Package webhook signs requests as Standard Webhooks 1.0.0 says, with a secret that the receiver shares.
package webhook

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"
	"time"
)

// The headers of a signed request.
const (
	IDHeader        = "Webhook-Id"
	TimestampHeader = "Webhook-Timestamp" // seconds since 1970
	SignatureHeader = "Webhook-Signature"
)

// Secret is the key of a signature. It is never shown.
type Secret struct{ key []byte }

// String implements fmt.Stringer.
func (Secret) String() string { return "whsec_…" }

// GoString implements fmt.GoStringer.
func (s Secret) GoString() string { return s.String() }

const (
	prefix              = "whsec_"
	shortest, longest   = 24, 64 // bytes, as the standard says
	hint                = "\nhint: write whsec_ and 24 to 64 random bytes in base64: openssl rand -base64 32"
	maxLine, maxSecrets = 4 << 10, 100
)

// ParseSecret reads whsec_BASE64. Errors do not repeat the text.
func ParseSecret(text string) (Secret, error) {
	encoded, found := strings.CutPrefix(text, prefix)
	if !found {
		return Secret{}, errors.New("the secret does not begin with whsec_" + hint)
	}
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return Secret{}, errors.New("the secret is not valid base64" + hint)
	}
	if len(key) < shortest || len(key) > longest {
		return Secret{}, fmt.Errorf("the secret has %d bytes, not %d to %d%s", len(key), shortest, longest, hint)
	}
	return Secret{key}, nil
}

// ParseSecrets reads a file with a secret on each line: the one that is in use, and beside it others while it is
// replaced. Empty lines, and lines that begin with #, are left out.
func ParseSecrets(file io.Reader) (secrets []Secret, err error) {
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxLine)
	number := 1
	for ; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		secret, err := ParseSecret(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if secrets = append(secrets, secret); len(secrets) > maxSecrets {
			return nil, fmt.Errorf("line %d: there are more than %d secrets", number, maxSecrets)
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("line %d: it is too long for a secret%s", number, hint)
	case err != nil:
		return nil, err
	case len(secrets) == 0:
		return nil, errors.New("there is no secret in it" + hint)
	}
	return secrets, nil
}

// Sign returns the value of Webhook-Signature for a message with an id, a time and a body: one signature for each
// secret.
func Sign(secrets []Secret, id string, at time.Time, body io.Reader) (string, error) {
	sums := make([]hash.Hash, len(secrets))
	all := make([]io.Writer, len(secrets))
	for i, secret := range secrets {
		sums[i] = hmac.New(sha256.New, secret.key)
		all[i] = sums[i]
	}
	to := io.MultiWriter(all...)
	_, _ = io.WriteString(to, id+"."+strconv.FormatInt(at.Unix(), 10)+".")
	if _, err := io.Copy(to, body); err != nil {
		return "", err
	}
	signatures := make([]string, len(sums))
	for i, sum := range sums {
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(sum.Sum(nil))
	}
	return strings.Join(signatures, " "), nil
}

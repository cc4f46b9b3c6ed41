package grpcexec

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/10f93571/retry/backoff"
	"github.com/10f93571/retry/httpexec/request"
)

// KeyName is the name of the idempotency key in the metadata.
const KeyName = "idempotency-key"

// metadata returns the headers of the call: the defaults, unless the user replaces them, and the user's lines.
func (c *Call) metadata(refs *request.References, defaults http.Header) (http.Header, error) {
	given, err := request.HeaderOf(c.AsRequest(), defaults, refs)
	if err == nil {
		err = request.CheckHead(http.MethodPost, given)
	}
	if err != nil {
		return nil, err
	}
	header := http.Header{}
	for name, values := range given {
		lower := strings.ToLower(name)
		if err := checkName(lower); err != nil {
			return nil, err
		}
		for _, value := range values {
			if value, err = checkValue(lower, value); err != nil {
				return nil, fmt.Errorf("metadata %s: %w", lower, err)
			}
			header.Add(lower, value)
		}
	}
	return header, nil
}

// checkName refuses what belongs to the protocol.
func checkName(name string) error {
	reserved := []string{"host", "te", "content-type", "content-length", "connection", "keep-alive", "proxy-connection",
		"transfer-encoding", "upgrade", "trailer", "expect", "accept-encoding"}
	switch {
	case strings.HasPrefix(name, "grpc-"), slices.Contains(reserved, name):
		return fmt.Errorf("metadata %s: the name belongs to the protocol\nhint: --timeout makes grpc-timeout", name)
	case strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_-.") != "":
		return fmt.Errorf("metadata %s: a name has letters, digits, _, - and . alone", name)
	}
	return nil
}

// checkValue returns a value as it is sent: binary ones in base64 without padding. The errors do not repeat it.
func checkValue(name, value string) (string, error) {
	if strings.HasSuffix(name, "-bin") {
		content, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(value, "="))
		if err != nil {
			return "", errors.New("the value of a name that ends with -bin is written in base64")
		}
		return base64.RawStdEncoding.EncodeToString(content), nil
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
		return "", errors.New("the value holds other characters than those of ASCII" +
			"\nhint: a name that ends with -bin has a value in base64")
	}
	return value, nil
}

// timeoutHeader writes the time that is left as grpc-timeout: at most 8 digits and a unit. It is rounded up, so that the
// caller's clock runs out first.
func timeoutHeader(left time.Duration) string {
	const most = 99_999_999
	for _, unit := range []struct {
		size time.Duration
		name string
	}{{time.Nanosecond, "n"}, {time.Microsecond, "u"}, {time.Millisecond, "m"}, {time.Second, "S"}, {time.Minute, "M"}} {
		if n := (max(left, 1)-1)/unit.size + 1; n <= most {
			return strconv.FormatInt(int64(n), 10) + unit.name
		}
	}
	return strconv.FormatInt(int64(min((left-1)/time.Hour+1, most)), 10) + "H"
}

// percentDecoded reads a grpc-message. What is malformed stays as it is: a message must not be lost.
func percentDecoded(message string) string {
	if !strings.Contains(message, "%") {
		return strings.ToValidUTF8(message, string(utf8.RuneError))
	}
	var b strings.Builder
	for i := 0; i < len(message); i++ {
		if message[i] == '%' && i+2 < len(message) {
			if n, err := strconv.ParseUint(message[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(n))
				i += 2
				continue
			}
		}
		b.WriteByte(message[i])
	}
	return strings.ToValidUTF8(b.String(), string(utf8.RuneError))
}

// pushback is what the server says about another attempt: grpc-retry-pushback-ms.
type pushback struct {
	delay time.Duration
	stop  bool // no other attempt: it is negative, or no number
}

func readPushback(header http.Header) (p pushback) {
	values := header.Values("Grpc-Retry-Pushback-Ms")
	if len(values) == 0 {
		return p
	}
	n, err := strconv.ParseInt(values[0], 10, 32)
	if err != nil || n < 0 || len(values) > 1 {
		return pushback{stop: true}
	}
	return pushback{delay: min(time.Duration(n)*time.Millisecond, backoff.Max)}
}

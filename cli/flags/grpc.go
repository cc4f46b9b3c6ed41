package flags

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/10f93571/retry/grpcexec"
	"github.com/10f93571/retry/task"
)

// GRPCFlags say which call is made. Those that grpcurl has, too, mean the same.
type GRPCFlags struct {
	Data       *string  `short:"d" group:"Call" placeholder:"JSON" help:"The request; @FILE is read, @- is stdin. Its types come from the server's reflection. Default {}."`
	DataRaw    string   `group:"Call" placeholder:"@FILE" help:"The request as it is encoded; @- is stdin. No reflection is needed, and the reply is written as it is."`
	DataBase64 *string  `name:"data-base64" group:"Call" placeholder:"TEXT" help:"The same in base64."`
	Header     []string `short:"H" sep:"none" group:"Call" placeholder:"LINE" help:"Metadata: 'name: value'; in base64 where the name ends with -bin. {env:NAME} is read at each attempt, and never stored."`
	Capture    string   `enum:"none,all" default:"none" group:"Call" placeholder:"none|all" help:"Of which replies the journal keeps the end: 8 KiB. Default none."`
	SafetyFlags

	ConnectTimeout *Duration `group:"Network" placeholder:"TIME" help:"For looking up, connecting and TLS together."`
	UnixSocket     string    `group:"Network" placeholder:"PATH" help:"Connect to this socket instead of the host."`
	Insecure       bool      `short:"k" group:"Network" help:"Believe any certificate."`
	CACert         string    `name:"cacert" group:"Network" placeholder:"FILE" help:"Believe these certificates instead of the system's."`
	Cert           string    `group:"Network" placeholder:"FILE" help:"The client's own certificate, PEM, perhaps with its key."`
	Key            string    `group:"Network" placeholder:"FILE" help:"Its key."`
}

// Build returns the call of host:port or a URL, and of package.Service/Method; the latter is empty where the URL has it.
// read returns what a file has, or stdin: request.StdinFile.
func (f *GRPCFlags) Build(host, method string, read func(file string) ([]byte, error)) (*grpcexec.Call, error) {
	body, message, err := f.body(read)
	if err != nil {
		return nil, err
	}
	c, err := grpcexec.New(callURL(host, method), body, message, f.Header)
	if err != nil {
		return nil, err
	}
	safety := c.AsRequest()
	if err := f.set(safety); err != nil {
		return nil, err
	}
	c.Idempotent, c.Keyed, c.KeyStyle = safety.Idempotent, safety.Keyed, safety.KeyStyle
	c.KeyTTL, c.MaxRetryAfter = safety.KeyTTL, safety.MaxRetryAfter
	c.Network.Insecure = f.Insecure
	if f.ConnectTimeout != nil {
		c.Network.ConnectTimeout = time.Duration(*f.ConnectTimeout)
	}
	for _, path := range []struct {
		to   *string
		from string
	}{{&c.Network.UnixSocket, f.UnixSocket}, {&c.Network.CACert, f.CACert}, {&c.Network.Cert, f.Cert},
		{&c.Network.Key, f.Key}} {
		if *path.to, err = absolute(path.from); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// callURL puts a URL together. package.Service.Method is accepted, too, as by grpcurl.
func callURL(host, method string) string {
	if !strings.Contains(host, "://") {
		host = "grpc://" + host
	}
	if method == "" {
		return host
	}
	if last := strings.LastIndexByte(method, '.'); last > 0 && !strings.Contains(method, "/") {
		method = method[:last] + "/" + method[last+1:]
	}
	return strings.TrimSuffix(host, "/") + "/" + strings.TrimPrefix(method, "/")
}

// body returns the request as JSON, or as an encoded message, which is not nil then.
func (f *GRPCFlags) body(read func(file string) ([]byte, error)) (body, message []byte, err error) {
	given := 0
	for _, is := range []bool{f.Data != nil, f.DataRaw != "", f.DataBase64 != nil} {
		if is {
			given++
		}
	}
	switch {
	case given > 1:
		return nil, nil, errors.New("-d, --data-raw and --data-base64 all say what is sent\nhint: give one of them")
	case f.Data != nil:
		body, err = readArgument("-d", *f.Data, read)
	case f.DataRaw != "":
		if !strings.HasPrefix(f.DataRaw, "@") {
			return nil, nil, errors.New("--data-raw takes a file\nhint: --data-raw @FILE, or --data-base64 TEXT")
		}
		message, err = readArgument("--data-raw", f.DataRaw, read)
	case f.DataBase64 != nil:
		if message, err = base64.StdEncoding.DecodeString(*f.DataBase64); err != nil {
			err = errors.New("--data-base64: it is not base64")
		}
	}
	if f.Data == nil && given > 0 && message == nil {
		message = []byte{}
	}
	return body, message, err
}

// readArgument returns a text, or what the file or the stdin holds that it names.
func readArgument(flag, text string, read func(file string) ([]byte, error)) ([]byte, error) {
	name, isFile := strings.CutPrefix(text, "@")
	if !isFile {
		return []byte(text), nil
	}
	content, err := read(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return content, nil
}

// CaptureMode returns what is kept of the replies.
func (f *GRPCFlags) CaptureMode() task.CaptureMode {
	if f.Capture == "all" {
		return task.CaptureBoth
	}
	return ""
}

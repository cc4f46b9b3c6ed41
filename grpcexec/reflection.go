package grpcexec

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/10f93571/retry/grpcexec/dynamic"
)

// schemaKey names a method of a server.
type schemaKey struct {
	place place
	path  string
}

// schema is what a server has said of a method.
type schema struct {
	method *dynamic.Method
	read   time.Time
}

const (
	schemaLifetime = 5 * time.Minute // a server may have been replaced by a newer one
	mostSchemas    = 1000
	mostFiles      = 2000     // of one schema
	mostBytes      = 16 << 20 // of all its files
)

// statusError says that the server's reflection answered with an error. The call itself was not sent.
type statusError struct{ *reply }

func (e *statusError) Error() string {
	return "ask the server for the types: " + statusMessage(e.reply)
}

// schema returns the types of a method: those that are known, or what the server's reflection says.
func (p *Pool) schema(ctx context.Context, c *connection, call *Call, header http.Header) (*dynamic.Method, error) {
	key := schemaKey{c.place, call.at().Path}
	p.mutex.Lock()
	known := p.schemas[key]
	p.mutex.Unlock()
	if known != nil && time.Since(known.read) < schemaLifetime {
		return known.method, nil
	}
	service, method := call.service()
	read, err := describe(ctx, c, header, service, method)
	if err != nil {
		return nil, err
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.schemas == nil || len(p.schemas) >= mostSchemas {
		p.schemas = map[schemaKey]*schema{}
	}
	p.schemas[key] = &schema{read, time.Now()}
	return read, nil
}

// describe asks for the file of a service, and for the files that it needs.
func describe(ctx context.Context, c *connection, header http.Header, service, method string) (*dynamic.Method, error) {
	r := newQuestions(ctx, c, header)
	err := r.ask(4, service) // file_containing_symbol
	var refused *statusError
	if errors.As(err, &refused) && refused.code == codeUnimplemented {
		r.version = "v1alpha"
		err = r.ask(4, service)
	}
	for missing := r.files.Missing(); err == nil && len(missing) > 0; missing = r.files.Missing() {
		err = r.ask(3, missing[0]) // file_by_filename
		if again := r.files.Missing(); err == nil && len(again) > 0 && again[0] == missing[0] {
			err = fmt.Errorf("the server does not describe the file %s", missing[0])
		}
	}
	switch {
	case errors.As(err, &refused) && refused.code == codeUnimplemented:
		return nil, &localError{errors.New("the server does not describe its types: it has no reflection" +
			"\nhint: send an encoded message with --data-raw @FILE, or have the server register reflection")}
	case errors.As(err, &refused) && refused.code == codeNotFound:
		return nil, &localError{fmt.Errorf("the server describes no service %s", service)}
	case err != nil:
		return nil, err
	}
	found, err := r.files.Method(service, method)
	switch {
	case err != nil:
		return nil, &localError{err}
	case found.Streams:
		return nil, &localError{fmt.Errorf("%s/%s streams, and only unary calls can be made", service, method)}
	}
	return found, nil
}

// questions ask a server for its files. Each question is a call of its own: the stream has one question and one answer.
type questions struct {
	ctx        context.Context
	connection *connection
	header     http.Header
	files      *dynamic.Files
	version    string
	asked      int
	size       int
}

func newQuestions(ctx context.Context, c *connection, header http.Header) *questions {
	return &questions{ctx: ctx, connection: c, header: header, files: dynamic.NewFiles(), version: "v1"}
}

// ask sends one question: a text in that field of ServerReflectionRequest.
func (r *questions) ask(number int32, question string) error {
	if r.asked++; r.asked > mostFiles {
		return &localError{fmt.Errorf("the server's description has more than %d files", mostFiles)}
	}
	message := dynamic.AppendString(dynamic.AppendString([]byte(nil), 1, r.connection.place.address), number, question)
	path := "/grpc.reflection." + r.version + ".ServerReflection/ServerReflectionInfo"
	answer, err := exchange(r.ctx, r.connection, path, r.header, message, mostBytes)
	switch {
	case errors.Is(err, errTooLarge):
		return &localError{fmt.Errorf("the server's description: %w", err)}
	case err != nil:
		return err
	case answer.code != codeOK:
		return &statusError{answer}
	}
	if r.size += len(answer.message); r.size > mostBytes {
		return &localError{fmt.Errorf("the server's description: %w", errTooLarge)}
	}
	return r.read(answer.message)
}

// read reads a ServerReflectionResponse.
func (r *questions) read(message []byte) error {
	err := dynamic.Each(message, func(number int32, content []byte, _ uint64) error {
		switch number {
		case 4: // file_descriptor_response
			return dynamic.Each(content, func(number int32, file []byte, _ uint64) error {
				if number != 1 {
					return nil
				}
				return r.files.Add(file)
			})
		case 7: // error_response
			return readError(content)
		}
		return nil
	})
	var refused *statusError
	if err != nil && !errors.As(err, &refused) {
		return &localError{err}
	}
	return err
}

func readError(message []byte) error {
	refused := &reply{code: codeUnknown}
	err := dynamic.Each(message, func(number int32, content []byte, value uint64) error {
		switch number {
		case 1:
			if value <= uint64(codeUnauthenticated) {
				refused.code = code(value)
			}
		case 2:
			refused.text = string(content)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return &statusError{refused}
}

package flags

import (
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// WhenFlags say when a queued task begins.
type WhenFlags struct {
	In *Duration `group:"Queue" placeholder:"TIME" help:"Begin after this time: 10m, 2h, 1d."`
	At *Moment   `group:"Queue" placeholder:"TIME" help:"Begin at this time: 15:04, or RFC 3339 like 2026-12-31T23:30:00+01:00."`
}

// WorkerFlags say how a worker works.
type WorkerFlags struct {
	Concurrency       Positive  `default:"64" group:"Worker" placeholder:"N" help:"Attempts at once. Default 64."`
	PerHost           Positive  `default:"16" group:"Worker" placeholder:"N" help:"Attempts at once to one host. Default 16."`
	Commands          Count     `default:"0" group:"Worker" placeholder:"N" help:"Commands at once. Default: as many as there are processors."`
	Grace             *Duration `group:"Worker" placeholder:"TIME" help:"How long attempts may go on after TERM. Default 25s."`
	VisibilityTimeout *Duration `group:"Worker" placeholder:"TIME" help:"After this time without a sign of life, others take what a worker has in hand. Default 30s."`
	LogDir            string    `group:"Worker" placeholder:"DIR" help:"Keep all output of commands here, a file an attempt."`
	SigningSecretFile string    `group:"Worker" placeholder:"FILE" help:"Sign requests that ask for it, by Standard Webhooks: a whsec_… secret a line, the first one is the newest."`
	EnvAllow          []string  `group:"Worker" placeholder:"NAME" help:"Variables that requests of the API may name as {env:NAME}."`
	Retention         *Duration `group:"Journal" placeholder:"TIME" help:"Keep finished tasks this long; 0 = for ever. Default $RETRY_RETENTION, or 30d."`
	AllowTarget       []string  `group:"Worker" placeholder:"CIDR|HOST" help:"Private addresses that requests of the API may reach."`
}

// ServeFlags say how the API is served.
type ServeFlags struct {
	Listen     string   `default:"127.0.0.1:7470" group:"API" placeholder:"ADDR|unix:PATH" help:"Where to listen. Default 127.0.0.1:7470."`
	TokenFile  string   `group:"API" placeholder:"FILE" help:"Ask for a token of this file: retry token add makes one."`
	ClientCA   string   `name:"client-ca" group:"API" placeholder:"FILE" help:"Or for a client certificate that this CA has signed."`
	TLSCert    string   `name:"tls-cert" group:"API" placeholder:"FILE" help:"Serve TLS with this certificate; it is read again when it changes."`
	TLSKey     string   `name:"tls-key" group:"API" placeholder:"FILE" help:"Its key."`
	Insecure   bool     `group:"API" help:"Listen without TLS on an address that others reach: something in front of it has TLS."`
	AllowHost  []string `group:"API" placeholder:"NAME" help:"Another name under which the API is reached."`
	AllowExec  bool     `group:"API" help:"Let tokens of scope admin add, see and change commands."`
	MaxPending Count    `default:"1000000" group:"API" placeholder:"N" help:"Refuse new tasks when so many are unfinished. Default 1000000; 0 = no limit."`
	LimitFlags
	NoWorker bool `group:"API" help:"Serve the API alone: other processes carry the tasks."`
}

// LimitFlags bound what a client may send.
type LimitFlags struct {
	MaxJSON        Size     `name:"max-json" default:"1MiB" group:"Limits" placeholder:"SIZE" help:"Of a call's JSON. Default 1MiB."`
	MaxInlineBody  Size     `default:"64KiB" group:"Limits" placeholder:"SIZE" help:"Of a body that stays with its task; a longer one gets a file. Default 64KiB."`
	MaxBlob        Size     `default:"1GiB" group:"Limits" placeholder:"SIZE" help:"Of a body that is sent by itself. Default 1GiB."`
	MaxBatch       Positive `default:"1000" group:"Limits" placeholder:"N" help:"Tasks in a batch. Default 1000."`
	MaxHeaders     Positive `default:"100" group:"Limits" placeholder:"N" help:"Headers of a task. Default 100."`
	MaxHeaderBytes Size     `default:"32KiB" group:"Limits" placeholder:"SIZE" help:"Of them together. Default 32KiB."`
	MaxKey         Positive `default:"255" group:"Limits" placeholder:"N" help:"Bytes of an idempotency key. Default 255."`
	MaxAttempts    Positive `default:"1000" group:"Limits" placeholder:"N" help:"Attempts that a policy of the API may have. Default 1000."`
	MaxTimeout     Duration `default:"15m" group:"Limits" placeholder:"TIME" help:"Timeout of an attempt. Default 15m; 0 = any."`
}

// Positive is a flag's value that is a whole number of 1 or more.
type Positive int

// UnmarshalText reads the value of a flag.
func (n *Positive) UnmarshalText(text []byte) error {
	var count Count
	if err := count.UnmarshalText(text); err != nil || count == 0 {
		return fmt.Errorf("invalid number %q\nhint: give a whole number, 1 or more", text)
	}
	*n = Positive(count)
	return nil
}

// Check refuses what makes no sense.
func (f *WorkerFlags) Check() error {
	if f.VisibilityTimeout != nil && *f.VisibilityTimeout == 0 {
		return errors.New("--visibility-timeout is 0, and every worker would take the attempts of the others" +
			"\nhint: leave it out for 30s")
	}
	return nil
}

// Drain is the value of --drain, which may stand alone.
type Drain string

// The values of --drain.
const (
	DrainNever Drain = ""
	DrainDue   Drain = "due"
	DrainAll   Drain = "all"
)

// IsBool implements kong.BoolMapperValue.
func (*Drain) IsBool() bool { return true }

// Decode implements kong.MapperValue.
func (d *Drain) Decode(ctx *kong.DecodeContext) error {
	value := "all"
	if token := ctx.Scan.Peek(); token.Type == kong.FlagValueToken {
		ctx.Scan.Pop()
		value = token.String()
	}
	return d.UnmarshalText([]byte(value))
}

// UnmarshalText reads a variable, or a value of the config file.
func (d *Drain) UnmarshalText(text []byte) error {
	switch strings.ToLower(string(text)) {
	case "all", "true":
		*d = DrainAll
	case "due":
		*d = DrainDue
	case "false":
		*d = DrainNever
	default:
		return fmt.Errorf("invalid value %q\nhint: --drain ends when no task is left, --drain=due when none is due", text)
	}
	return nil
}

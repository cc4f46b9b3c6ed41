// Command retry runs a command until it succeeds, and remembers every attempt.
package main

import (
	"io"
	"log"
	"os"

	"github.com/10f93571/retry/cli"
)

func main() {
	log.SetOutput(io.Discard) // net/http logs what a server sends after its reply
	p := cli.Process{
		Args:    os.Args[1:],
		Environ: os.Environ(),
		Stdin:   os.Stdin,
		Stdout:  os.Stdout,
		Stderr:  os.Stderr,
	}
	os.Exit(p.Main())
}

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
	os.Exit(cli.Main(os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}

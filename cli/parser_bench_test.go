package cli

import (
	"strings"
	"testing"
)

func BenchmarkParser(b *testing.B) {
	for _, name := range []string{"run", "http"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				command := subcommand(&runCommand{})
				if name != "run" {
					command = newSubcommand(name)
				}
				if _, err := testProcess().newParser(name, command); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCommandLine(b *testing.B) {
	for _, args := range []string{"-- true", "-n 3 -- true", "-n 3 --id x --capture both -q -- true", "--json --dry-run -- true"} {
		b.Run(args, func(b *testing.B) {
			p := testProcess()
			p.Args = strings.Fields(args)
			b.ReportAllocs()
			for b.Loop() {
				run := newRunCommand()
				if _, err := p.parse(run, typedFlags(run, p.Args)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package cli

import "testing"

func BenchmarkParser(b *testing.B) {
	for _, name := range []string{"run", "http"} {
		b.Run(name, func(b *testing.B) {
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

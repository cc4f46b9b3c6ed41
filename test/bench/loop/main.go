// Command loop repeats a command until it succeeds. It does nothing else: a retry tool in Go costs at least this.
package main

import (
	"flag"
	"os"
	"os/exec"
)

func main() {
	attempts := flag.Int("n", 10, "attempts at most")
	flag.Parse()
	for range *attempts {
		cmd := exec.Command(flag.Arg(0), flag.Args()[1:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		if cmd.Run() == nil {
			return
		}
	}
	os.Exit(1)
}

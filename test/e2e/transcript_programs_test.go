//go:build unix

package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// prelude is what the scripts of the sessions begin with.
const prelude = `
log() { echo "$*" >>log; }
look() {
	for fd in 0 1 2; do [ -t $fd ] && log $1: $fd is a terminal; done
	set -- $1 $(ps -o pgid=,tpgid= -p $$)
	[ $2 = $3 ] && log $1: in the foreground
	log $1: $(stty -a </dev/tty)
}
[ $0 = ./look ] || look first`

// sessionScripts are the commands of the sessions that are scripts.
var sessionScripts = map[string]string{
	"look": `look $1`,
	"sure": `while printf 'sure? '; read -r x || exit 1; do echo "<$x>"; [ "$x" = yes ] && break; done
		look last`,
	"password": `read -rsp 'password? ' x; echo "<${#x} letters>"
		look last`,
	"password-tty": `read -rsp 'password? ' x </dev/tty; echo "<${#x} letters>"
		look last`,
	"editor": `raw() { stty raw -echo; printf '%s\r\n' "$1"; }
		saved=$(stty -g)
		raw editing
		while key=$(dd bs=1 count=1 2>/dev/null; echo .); do
			case $key in
			. | q.) break ;;
			k.) kill -KILL $$ ;;
			z.) stty "$saved"; echo suspending; kill -TSTP 0; raw 'editing again' ;;
			Z.) stty "$saved"; echo suspending; kill -TSTP $$; raw 'editing again' ;;
			*) printf '<%q>\r\n' "${key%.}" ;;
			esac
		done
		stty "$saved"; echo bye
		look last`,
	"stubborn": `trap '' TSTP; printf 'sure? '; read -r x; echo "<$x>"
		look last`,
	"each": `while read -r item; do
			printf 'delete %s? ' $item >/dev/tty
			read -r x </dev/tty && [ "$x" = yes ] && gone="$gone $item"
		done
		echo gone:$gone
		look last`,
	"answer": `printf 'answer? ' >&2; read -r x; echo "$x"
		look last`,
	"fail":   `read -r x; exit ${x:-7}`,
	"daemon": `(read -rt 60 x <>order; echo late $x; echo done >report) & echo started`,
}

// programs are commands that handle signals better than a script can. The test binary runs them when it has their name.
var programs = map[string]func() error{
	"listener": runListener,
	"careful":  runCareful,
}

func init() {
	run, known := programs[filepath.Base(os.Args[0])]
	if !known {
		return
	}
	pids := fmt.Appendln(nil, os.Getpid(), os.Getppid())
	if err := errors.Join(shell("./look first"), os.WriteFile("pids", pids, 0o600), run(),
		shell("./look last")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	}
	os.Exit(0)
}

// shell runs a line of shell at the terminal.
func shell(code string) error {
	cmd := exec.Command("sh", "-c", code)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}

// note adds a line to a file.
func note(name, line string) error {
	file, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(file, line)
	return errors.Join(err, file.Close())
}

// runListener counts signals. USR1 makes it log what has come so far, USR2 ends it.
func runListener() error {
	signals := make(chan os.Signal, 100)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGCONT,
		syscall.SIGWINCH,
		syscall.SIGUSR1, syscall.SIGUSR2)
	fmt.Println("listening")
	heard := map[syscall.Signal]int{}
	late := time.After(2 * patience)
	for err := error(nil); err == nil; {
		select {
		case <-late:
			return errors.New("the listener was not ended in time")
		case sig := <-signals:
			if sig == syscall.SIGUSR2 {
				return nil
			}
			err = countSignal(heard, sig.(syscall.Signal))
		}
	}
	return nil
}

func countSignal(heard map[syscall.Signal]int, sig syscall.Signal) error {
	if sig != syscall.SIGUSR1 {
		heard[sig]++
		return note("heard", fmt.Sprintf("%s %d", unix.SignalName(sig), heard[sig]))
	}
	var all []string
	for _, sig := range slices.Sorted(maps.Keys(heard)) {
		all = append(all, fmt.Sprintf("%s %d", unix.SignalName(sig), heard[sig]))
	}
	return note("log", "so far "+strings.Join(all, ", "))
}

// runCareful asks a question with echo off, and turns echo on while it is stopped.
func runCareful() error {
	suspended, continued := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(suspended, syscall.SIGTSTP)
	signal.Notify(continued, syscall.SIGCONT)
	answer := make(chan string)
	go func() {
		line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
		answer <- strings.TrimSpace(line)
	}()
	err := shell("stty -echo; echo 'careful?'")
	for err == nil {
		select {
		case text := <-answer:
			return shell("stty echo; echo answer " + text)
		case <-suspended:
			err = shell("stty echo; echo cleaned up")
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) // after Notify Go never gives TSTP its default action back
			<-continued
			err = errors.Join(err, shell("stty -echo; echo back again"))
		}
	}
	return err
}

package load

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

// A child that lives counts as one that was reaped does: PostgreSQL has both.
func TestProcessorTimeHasThatOfChildren(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells it")
	}
	const work = `i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; `
	before, err := ProcessorTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", work+"echo; read line")
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = out.Read(make([]byte, 1)) // it has worked, and waits
	living, err := ProcessorTime(os.Getpid())
	in.Close()
	_ = cmd.Wait()
	took := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if err != nil || living-before < took-5*tick {
		t.Errorf("with a living child: got %v more, error %v, want the %v that it took", living-before, err, took)
	}
	if reaped, err := ProcessorTime(os.Getpid()); err != nil || reaped-before < took-5*tick {
		t.Errorf("with a reaped child: got %v more, error %v, want the %v that it took", reaped-before, err, took)
	}
	if got, err := ProcessorTime(0); got != 0 || err != nil {
		t.Errorf("without a process: got %v, error %v, want 0", got, err)
	}
	if _, err := ProcessorTime(cmd.Process.Pid); err == nil {
		t.Error("of a process that has ended: got no error")
	}
}

func TestUsageIsPerAttempt(t *testing.T) {
	before := usage{worker: time.Second}
	got := usage{worker: 3 * time.Second}.since(before, 1000)
	if len(got) != 1 || got[0].Name != processorTime || got[0].Value != 2000 {
		t.Errorf("got %v, want 2000 µs of the worker, and no server", got)
	}
}

package worker

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/10f93571/retry/runner"
	"github.com/10f93571/retry/state"
	"github.com/10f93571/retry/task"
)

// of gives tasks a partition.
func of(partition string, tasks []*task.Task) []*task.Task {
	for _, t := range tasks {
		t.Partition = partition
	}
	return tasks
}

// hanging is an executor for hosts of which those named hang-… accept and do not answer, until a timeout of 50 s. The
// others answer at once.
func hanging(ctx context.Context, t *task.Task, c runner.Call) task.Outcome {
	timeout := task.Outcome{Exit: 28, Error: task.ErrorTimeout,
		Reply: &task.Reply{Default: task.Eligibility{Class: task.ClassRetryable}}}
	if strings.HasPrefix(t.Host(), "hang") {
		return sleeper(50*time.Second, timeout)(ctx, t, c)
	}
	return ok
}

// shared has partitions that wait on a schedule of 60 slots, each with many tasks but for few, which has 5. Those of
// slow and few never end. It returns how many slots each has after many others have ended.
func shared(partitions []string, together bool) map[string]int {
	s, number, free := newSchedule(1000, 60), int64(0), 60
	known(s, "host")
	got := map[string]int{}
	var ends []state.Item
	fill := func() {
		for ; free > 0; free-- {
			i, _, ok, _ := s.take(noon)
			if !ok {
				return
			}
			if got[i.Partition]++; i.Partition != "slow" && i.Partition != "few" {
				ends = append(ends, i)
			}
		}
	}
	for _, partition := range partitions {
		tasks := 1000
		if partition == "few" {
			tasks = 5
		}
		for range tasks {
			number++
			s.push(item(number, noon, partition, "host"), noon)
		}
		if !together {
			fill()
		}
	}
	fill()
	for range 300 {
		if len(ends) == 0 {
			break
		}
		s.done(ends[0].Lane, answering, true, true)
		got[ends[0].Partition]--
		free, ends = free+1, ends[1:]
		fill()
	}
	return got
}

// A partition alone has all slots. Others that come get each slot that is free again, until they have their share, and
// one whose attempts take long does not get more than its share while others wait.
func TestPartitionsShareTheSlots(t *testing.T) {
	tests := map[string]struct {
		waits    []string // the partitions with tasks, in the order in which they come
		together bool     // they are there from the beginning
		want     map[string]int
	}{
		"one alone":             {[]string{"a"}, true, map[string]int{"a": 60}},
		"a slow one alone":      {[]string{"slow"}, true, map[string]int{"slow": 60}},
		"a second one":          {[]string{"a", "b"}, false, map[string]int{"a": 30, "b": 30}},
		"three":                 {[]string{"a", "b", "c"}, false, map[string]int{"a": 20, "b": 20, "c": 20}},
		"one with little to do": {[]string{"a", "b", "few"}, false, map[string]int{"a": 27, "b": 28, "few": 5}},
		"a slow one and one":    {[]string{"a", "slow"}, true, map[string]int{"a": 30, "slow": 30}},
		"a slow one and two":    {[]string{"a", "slow", "b"}, true, map[string]int{"a": 20, "slow": 20, "b": 20}},
		"a slow one beside few": {[]string{"few", "a", "slow"}, true, map[string]int{"few": 5, "a": 28, "slow": 27}},
		"a slow one and few":    {[]string{"slow", "few"}, true, map[string]int{"slow": 55, "few": 5}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := shared(test.waits, test.together)
			for partition, want := range test.want {
				if diff := got[partition] - want; diff < -1 || diff > 1 {
					t.Errorf("got %v, want about %v", got, test.want)
				}
			}
		})
	}
}

// What a partition holds is known until it ends, though nothing waits for it any more.
func TestTidyLeavesWhatRuns(t *testing.T) {
	s := newSchedule(16, 60)
	s.push(item(1, noon, "p", "host"), noon)
	if taken := takeAll(s, noon); len(taken) != 1 {
		t.Fatalf("got %d tasks, want one", len(taken))
	}
	s.tidy()
	if s.done(state.Lane{Partition: "p", Host: "host"}, untried, true, true); s.ring("p").running != 0 || s.settled != 0 {
		t.Errorf("got %d running and %d settled, want none", s.ring("p").running, s.settled)
	}
}

// Untried hosts of one partition that accept and never answer do not hold up the untried hosts of another one, and what
// both of them hold leaves a host that answers on time.
func TestUntriedHostsThatHangHoldUpTheirPartitionAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		m.add(false, of("c", hosts(1, "known"))...)
		var b begun
		_, stop := m.run(Config{Observer: &b}, hanging)
		time.Sleep(time.Second)
		for n := range 100 {
			m.add(true, of("a", hosts(1, fmt.Sprint("hang-a", n)))...)
		}
		time.Sleep(time.Second)
		m.add(true, of("b", hosts(1, "new"))...)
		time.Sleep(time.Second)
		for n := range 100 {
			m.add(true, of("b", hosts(1, fmt.Sprint("hang-b", n)))...)
		}
		time.Sleep(time.Second)
		m.add(true, of("c", append(hosts(20, "known"), hosts(20, "newer")...))...)
		time.Sleep(time.Second)
		if got := m.count(task.Succeeded); got != 42 {
			t.Errorf("got %d done while others hang, want 42", got)
		}
		stop()
	})
}

// Hosts that answer once and then hang may have all slots, but only until the first timeouts. Then they have two each,
// until they answer again.
func TestAHostThatHangsIsKnownAfterOneTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		started := time.Now()
		hang := func() bool {
			since := time.Since(started)
			return since > time.Second && since < 10*time.Minute
		}
		running, most := 0, 0 // attempts to the first of them, once it answers again
		e := func(ctx context.Context, tk *task.Task, c runner.Call) task.Outcome {
			if tk.Host() == "hang-0" && !hang() {
				m.set(func() { running++; most = max(most, running) })
				defer m.set(func() { running-- })
			}
			if strings.HasPrefix(tk.Host(), "hang") && !hang() {
				return sleeper(time.Second, ok)(ctx, tk, c)
			}
			return hanging(ctx, tk, c)
		}
		for n := range 4 {
			m.add(false, hosts(1, fmt.Sprint("hang-", n))...)
		}
		var b begun
		w, stop := m.run(Config{Observer: &b}, e)
		time.Sleep(2 * time.Second)
		for n := range 4 {
			tasks := hosts(100, fmt.Sprint("hang-", n))
			for _, tk := range tasks {
				tk.Policy.Attempts = 0
			}
			m.add(true, tasks...)
		}
		synctest.Wait()
		if got := w.Running(); got != DefaultConcurrency {
			t.Errorf("got %d that run, want all slots", got)
		}
		m.add(true, hosts(50, "good")...)
		time.Sleep(time.Minute + time.Second)
		if got := m.count(task.Succeeded); got != 54 {
			t.Errorf("got %d done after the first timeouts, want 54", got)
		}
		if got := w.Running(); got != 4*probesMost {
			t.Errorf("got %d that run to hosts that hang, want %d", got, 4*probesMost)
		}
		time.Sleep(12 * time.Minute)
		stop()
		if most != DefaultPerHost {
			t.Errorf("got %d at once to a host that answers again, want %d", most, DefaultPerHost)
		}
	})
}

// What was stopped or never sent says nothing about its host.
func TestOnlyAHostThatWasAskedIsMute(t *testing.T) {
	reply := func() *task.Reply { return &task.Reply{Default: task.Eligibility{Class: task.ClassRetryable}} }
	tests := map[string]struct {
		outcome task.Outcome
		want    int
	}{
		"timed out":   {task.Outcome{Exit: 28, Error: task.ErrorTimeout, Reply: reply()}, mute},
		"refused":     {task.Outcome{Exit: 7, Error: task.ErrorConnect, Reply: reply()}, mute},
		"answered":    {task.Outcome{Reply: &task.Reply{Status: 503}}, answering},
		"not allowed": {task.Outcome{Exit: 7, Error: task.ErrorRefused, Reply: reply()}, untried},
		"stopped":     {task.Outcome{Exit: 1, Stop: syscall.SIGTERM, Reply: reply()}, untried},
		"local":       {task.Outcome{Exit: 26, Error: task.ErrorLocal, Reply: reply()}, untried},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory(t)
				tasks := hosts(1, "host")
				tasks[0].Policy.Attempts = 1
				m.add(false, tasks...)
				w, stop := m.run(Config{}, sleeper(time.Second, test.outcome))
				time.Sleep(2 * time.Second)
				stop()
				if got := w.plan.host("host").class; got != test.want {
					t.Errorf("got class %d, want %d", got, test.want)
				}
			})
		})
	}
}

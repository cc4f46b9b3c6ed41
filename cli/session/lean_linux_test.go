package session

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/10f93571/retry/cli/render"
	"github.com/10f93571/retry/task"
)

func TestOnlyWhatEqualsTheFileIsUnwritten(t *testing.T) {
	const inode = " 00001000 fe:00 99                   "
	for _, c := range []struct{ header, anonymous, swap string }{
		{"401000-bef000 rw-p" + inode + "/bin/retry", "0", "0"},
		{"401000-bef000 rwxp" + inode + "/bin/retry", "0", "0"},
		{"401000-bef000 r-xp" + inode + "/bin/retry", "4", "0"},
		{"401000-bef000 r--p" + inode + "/bin/retry", "0", "4"},
		{"401000-bef000 r-xp" + inode + "/lib/libc.so.6", "0", "0"},
		{"401000-bef000 r-xp" + inode + "/tmp/bin/retry", "0", "0"},
		{"401000-bef000 ---p" + inode + "/bin/retry", "0", "0"},
		{"401000-400000 r-xp" + inode + "/bin/retry", "0", "0"},
		{"nonsense r-xp" + inode + "/bin/retry", "0", "0"},
	} {
		smaps := entry(c.header, c.anonymous, c.swap)
		if got := unwritten(smaps, "/bin/retry"); len(got) > 0 {
			t.Errorf("%s: %x is unwritten", smaps, got)
		}
		smaps += entry("bef000-bf0000 r--p"+inode+"/bin/retry", "0", "0") + entry("c00000-c01000 r-xp"+inode+"[vdso]", "0", "0")
		if got := unwritten(smaps, "/bin/retry"); !slices.Equal(got, []mapping{{0xbef000, 0x1000}}) {
			t.Errorf("%s: %x is unwritten, not bef000 alone", smaps, got)
		}
	}
}

// entry is one of smaps, without most of its lines.
func entry(header, anonymous, swap string) string {
	return header + "\nSize: 4 kB\nRss: 4 kB\nAnonymous: " + anonymous + " kB\nSwap: " + swap + " kB\nVmFlags: rd ex mr mw me\n"
}

func TestALongWaitGivesMemoryBack(t *testing.T) {
	l := &lean{Observer: render.Silent{}, last: time.Now()}
	garbage := make([]byte, 16<<20)
	for i := range garbage {
		garbage[i] = 1
	}
	runtime.KeepAlive(garbage)
	tk := &task.Task{AttemptCount: 1}
	before := residentFile(t)
	l.Waiting(tk, leanWait-time.Nanosecond)
	if l.leaned != 0 {
		t.Error("a short wait gave memory back")
	}
	l.Waiting(tk, leanWait)
	if after := residentFile(t); l.leaned != 1 || after >= before {
		t.Errorf("%d kB of files are resident in a long wait, %d before", after, before)
	}
	var heap runtime.MemStats
	runtime.ReadMemStats(&heap)
	if left := heap.HeapSys - heap.HeapReleased; left >= uint64(len(garbage)) {
		t.Errorf("the heap holds %d bytes in a long wait", left)
	}
}

func TestOneOfManyShortWaitsGivesMemoryBack(t *testing.T) {
	l := &lean{Observer: render.Silent{}, last: time.Now().Add(-leanEvery)}
	tk := &task.Task{}
	for range 3 {
		tk.AttemptCount++
		l.Waiting(tk, time.Millisecond)
	}
	if l.leaned != 1 {
		t.Errorf("memory was given back at wait %d, want 1", l.leaned)
	}
}

// residentFile is in kB.
func residentFile(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(status), "\nRssFile:")
	fields := strings.Fields(rest)
	if !found || len(fields) == 0 {
		t.Skip("this kernel does not tell RssFile")
	}
	kB, err := strconv.Atoi(fields[0])
	if err != nil {
		t.Fatal(err)
	}
	return kB
}

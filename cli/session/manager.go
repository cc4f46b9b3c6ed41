package session

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
)

// Ready tells the service manager, where one has started this process, that the service works, and from then on that it
// is alive, as often as the manager's watchdog wants to hear it. See sd_notify(3).
func (p *Host) Ready(ctx context.Context, alive func() bool) {
	_, _ = daemon.SdNotify(false, daemon.SdNotifyReady)
	limit, err := daemon.SdWatchdogEnabled(false)
	if err != nil || limit <= 0 {
		return
	}
	go func() {
		tick := time.NewTicker(limit / 2)
		defer tick.Stop()
		for {
			if alive() {
				_, _ = daemon.SdNotify(false, daemon.SdNotifyWatchdog)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
}

// stopping tells the service manager that the service ends by itself.
func stopping() { _, _ = daemon.SdNotify(false, daemon.SdNotifyStopping) }

// forTheService are variables that a service manager gives a service for itself: its commands must not speak for it.
var forTheService = [...]string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"}

// withoutManager returns an environment for commands.
func withoutManager(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(setting string) bool {
		name, _, _ := strings.Cut(setting, "=")
		return slices.Contains(forTheService[:], name)
	})
}

// passedListener returns the socket on which the service manager listens for this process, with its address as --listen
// has it; nil where it passed none. See sd_listen_fds(3).
func passedListener() (net.Listener, string, error) {
	files := activation.Files(false)
	if len(files) == 0 {
		return nil, "", nil
	}
	defer func() {
		for _, file := range files {
			_ = file.Close()
		}
	}()
	if len(files) > 1 {
		return nil, "", fmt.Errorf("the service manager passed %d sockets, and one is served"+
			"\nhint: leave one ListenStream= in the .socket unit", len(files))
	}
	listener, err := net.FileListener(files[0])
	if err != nil {
		return nil, "", fmt.Errorf("the socket of the service manager: %w\nhint: it has to be a ListenStream= in the .socket unit", err)
	}
	address := listener.Addr().String()
	if listener.Addr().Network() == "unix" {
		address = "unix:" + address
	}
	return listener, address, nil
}

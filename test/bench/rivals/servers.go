package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/10f93571/retry/test/bench/load"
)

// startRedis runs a redis-server on a unix socket alone.
func startRedis(ctx context.Context, dir string) (server *load.Process, socket, version string, err error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, "", "", fmt.Errorf("%w\nhint: apt-get install redis-server", err)
	}
	socket = filepath.Join(dir, "redis.sock")
	server, err = load.Start(exec.Command(path, "--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "",
		"--appendonly", "yes", "--appendfsync", "everysec"), filepath.Join(dir, "redis.log"))
	if err != nil {
		return nil, "", "", err
	}
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: socket})
	defer client.Close()
	err = ready(ctx, server, func() error {
		info, err := client.InfoMap(ctx, "server").Result()
		version = info["Server"]["redis_version"]
		return err
	})
	if err != nil {
		return nil, "", "", errors.Join(err, server.Stop())
	}
	return server, socket, version, nil
}

// postgresSettings are what a guide for a small machine says. Every commit waits for its fsync, as by default.
const postgresSettings = "synchronous_commit=on, fsync=on, shared_buffers=1GB, effective_cache_size=3GB, work_mem=16MB, " +
	"wal_buffers=16MB, max_wal_size=8GB, checkpoint_timeout=15min, wal_compression=on, random_page_cost=1.1"

// startPostgres makes a cluster and runs it on a unix socket alone, as another user where this one is root.
func startPostgres(ctx context.Context, dir string) (server *load.Process, address, version string, err error) {
	bin, err := postgresFolder()
	if err != nil {
		return nil, "", "", err
	}
	as, err := ordinaryUser()
	if err != nil {
		return nil, "", "", err
	}
	if as != nil {
		if err := os.Chown(dir, int(as.Uid), int(as.Gid)); err != nil {
			return nil, "", "", fmt.Errorf("hand the folder to the database's user: %w", err)
		}
	}
	data := filepath.Join(dir, "data")
	command := func(name string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, filepath.Join(bin, name), args...)
		cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Credential: as}
		return cmd
	}
	initdb := command("initdb", "-D", data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync")
	if said, err := initdb.CombinedOutput(); err != nil {
		return nil, "", "", fmt.Errorf("initdb: %w\n%s", err, said)
	}
	args := []string{"-D", data, "-k", dir, "-c", "listen_addresses="}
	for _, setting := range regexp.MustCompile(`\w+=[^,]+`).FindAllString(postgresSettings, -1) {
		args = append(args, "-c", setting)
	}
	server, err = load.Start(command("postgres", args...), filepath.Join(filepath.Dir(dir), "postgres.log"))
	if err != nil {
		return nil, "", "", err
	}
	address = "host=" + dir + " user=postgres dbname=postgres"
	err = ready(ctx, server, func() error {
		conn, err := pgx.Connect(ctx, address)
		if err != nil {
			return err
		}
		version = conn.PgConn().ParameterStatus("server_version")
		return conn.Close(ctx)
	})
	if err != nil {
		return nil, "", "", errors.Join(err, server.Stop())
	}
	return server, address, version, nil
}

// postgresFolder is where initdb and postgres are: Debian keeps them out of the PATH.
func postgresFolder() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		path, err = filepath.EvalSymlinks(path)
		return filepath.Dir(path), err
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // the pattern is right
	if len(found) == 0 {
		return "", errors.New("initdb is missing\nhint: apt-get install postgresql")
	}
	return filepath.Dir(found[len(found)-1]), nil
}

// ordinaryUser is whom PostgreSQL, which refuses root, runs as; nil where this process is not root.
func ordinaryUser() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	found, err := user.Lookup("postgres")
	if err != nil {
		if found, err = user.Lookup("nobody"); err != nil {
			return nil, fmt.Errorf("find a user for PostgreSQL: %w", err)
		}
	}
	uid, wrongUser := strconv.ParseUint(found.Uid, 10, 32)
	gid, wrongGroup := strconv.ParseUint(found.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(wrongUser, wrongGroup)
}

// ready asks a server until it replies, for ten seconds.
func ready(ctx context.Context, server *load.Process, ask func() error) (err error) {
	for range 500 {
		if err = ask(); err == nil {
			return nil
		}
		if ended := cmp.Or(server.Ended(), ctx.Err()); ended != nil {
			return ended
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}

//go:build race && unix

package main

func init() { raceDetector = true }

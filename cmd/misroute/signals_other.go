//go:build !unix

package main

func quietLimits() {}

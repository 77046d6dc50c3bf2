//go:build !race

package rocketmq_test

const raceDetector = false

// Package kube runs a real API server of Kubernetes, with etcd below it and nothing beside it, on loopback: no kubelet runs what
// it stores, and no controller makes anything of it. It is what charts and webhooks are tested on; one test plays the kubelet of one
// pod, with processes for containers. Its tests take the tag kube, since the programs take minutes to build where they have not been
// built before, and Linux, where all of 127.0.0.0/8 is loopback.
package kube

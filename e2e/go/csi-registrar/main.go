// csi-registrar tells the kubelet where a CSI driver listens.
//
// The kubelet finds plugins by the sockets in its plugins_registry folder and asks each one what it is.
// The upstream node-driver-registrar cannot be had from the module proxy with a verified checksum;
// answering the kubelet's two calls is all that a test cluster needs of it.
package main

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"log"
	"net"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

type driver struct {
	registration.UnimplementedRegistrationServer
	name     string
	endpoint string
}

func (d *driver) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type:              registration.CSIPlugin,
		Name:              d.name,
		Endpoint:          d.endpoint,
		SupportedVersions: []string{"1.0.0"},
	}, nil
}

func (d *driver) NotifyRegistrationStatus(_ context.Context, status *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if !status.PluginRegistered {
		log.Fatalf("the kubelet refused driver %s: %s", d.name, status.Error)
	}
	log.Printf("the kubelet registered driver %s at %s", d.name, d.endpoint)
	return &registration.RegistrationStatusResponse{}, nil
}

func main() {
	name := flag.String("driver", "", "name of the CSI driver")
	endpoint := flag.String("endpoint", "", "path of the driver's socket")
	registry := flag.String("registry", "", "the kubelet's plugins_registry folder")
	flag.Parse()
	if *name == "" || *endpoint == "" || *registry == "" {
		log.Fatal("--driver, --endpoint and --registry are needed")
	}

	socket := filepath.Join(*registry, *name+"-reg.sock")
	// A socket left by a killed registrar refuses the bind; the kubelet keeps no hold on it.
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Fatalf("failed to remove the old socket: %v", err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		log.Fatalf("failed to listen: %v", err)
	}
	server := grpc.NewServer()
	registration.RegisterRegistrationServer(server, &driver{name: *name, endpoint: *endpoint})
	log.Fatal(server.Serve(listener))
}

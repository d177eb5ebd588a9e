//! `describe`: what a person reads when something does not go.

use anyhow::{Result, ensure};
use boathook_tests::Ctx;

use crate::{
    boats::Boats,
    kubectl::{Kubectl, has},
    manifests::{BUSYBOX, IDLE, claim, config_map, deployment, pod},
};

pub(crate) async fn a_pod_is_described_with_its_containers_and_events(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    kubectl.apply(&config_map("map", &[("a", "1")])).await?;
    let manifest = pod("box", IDLE).replace(
        "    command:",
        "    ports: [{containerPort: 80, name: http}]
    resources: {requests: {cpu: 10m, memory: 16Mi}, limits: {memory: 64Mi}}
    env: [{name: WORD, value: whale}, {name: ME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
    volumeMounts: [{name: map, mountPath: /map, readOnly: true}]
    command:",
    ) + "  volumes:\n  - {name: map, configMap: {name: map}}\n";
    kubectl.apply(&manifest).await?;
    kubectl.ok("wait --for=condition=Ready pod/box").await?;
    let text = kubectl
        .shows(
            "describe pod box",
            &[
                "Name:             box\n",
                &format!("Namespace:        {}\n", kubectl.namespace()),
                "Priority:         0\n",
                "Service Account:  default\n",
                "Labels:           app=box\n",
                "Status:           Running\n",
                "Containers:\n  main:\n    Container ID:  ",
                &format!("    Image:         {BUSYBOX}\n"),
                "    Port:          80/TCP (http)\n",
                "    State:          Running\n      Started:      ",
                "    Ready:          True\n",
                "    Restart Count:  0\n",
                "    Limits:\n      memory:  64Mi\n    Requests:\n      cpu:     10m\n      memory:  16Mi\n",
                "      WORD:  whale\n      ME:    box (v1:metadata.name)\n",
                "      /map from map (ro)\n",
                "Conditions:\n Type Status\n PodReadyToStartContainers True \n Initialized True \n Ready True \n",
                " ContainersReady True \n PodScheduled True \n",
                "    Type:        ConfigMap (a volume populated by a ConfigMap)\n",
                "QoS Class:                   Burstable\n",
                "Node-Selectors:              <none>\n",
                "Tolerations: node.kubernetes.io/not-ready:NoExecute op=Exists for 300s\n",
                " node.kubernetes.io/unreachable:NoExecute op=Exists for 300s\n",
                "Events:\n",
                "Normal Scheduled ",
                "Successfully assigned",
                "Normal Pulled ",
                "already present on machine",
                "Normal Created ",
                "Normal Started ",
            ],
        )
        .await?;
    // The node it runs on, with its address.
    let node = kubectl.read("pod/box", "{.spec.nodeName}/{.status.hostIP}").await?;
    has(&text, &[&format!("Node:             {node}\n")])?;

    // One that cannot start says why.
    kubectl.apply(&pod("lost", IDLE).replace(BUSYBOX, "localhost/no-such:1")).await?;
    kubectl
        .shows(
            "describe pod lost",
            &[
                "    State:          Waiting\n      Reason:       ErrImageNeverPull\n",
                "Warning  ",
                "Container image \"localhost/no-such:1\" is not present with pull policy of Never",
            ],
        )
        .await
        .map(drop)
}

pub(crate) async fn a_deployment_is_described_with_its_sets_and_events(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    kubectl.apply(&deployment("web", 2)).await?;
    kubectl.ok("rollout status deployment/web").await?;
    kubectl
        .shows(
            "describe deployment web",
            &[
                "Name:                   web\n",
                "Labels:                 app=web\n",
                "Annotations:            deployment.kubernetes.io/revision: 1\n",
                "Selector:               app=web\n",
                "Replicas:               2 desired | 2 updated | 2 total | 2 available | 0 unavailable\n",
                "StrategyType:           RollingUpdate\n",
                "RollingUpdateStrategy:  25% max unavailable, 25% max surge\n",
                "Pod Template:\n  Labels:  app=web\n",
                "Conditions:\n Type Status Reason\n ---- ------ ------\n Available True MinimumReplicasAvailable\n",
                " Progressing True NewReplicaSetAvailable\n",
                "OldReplicaSets:  <none>\nNewReplicaSet:   web-",
                "(2/2 replicas created)\n",
                "  Normal  ScalingReplicaSet  ",
                "deployment-controller  Scaled up replica set web-",
            ],
        )
        .await?;
    kubectl
        .shows(
            "describe replicaset -l app=web",
            &[
                "Controlled By:  Deployment/web\n",
                "Replicas:       2 current / 2 desired\n",
                "Pods Status:    2 Running / 0 Waiting / 0 Succeeded / 0 Failed\n",
                "replicaset-controller  Created pod: web-",
            ],
        )
        .await
        .map(drop)
}

pub(crate) async fn the_node_is_described_with_its_pods(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    kubectl.apply(&pod("box", IDLE)).await?;
    kubectl.ok("wait --for=condition=Ready pod/box").await?;
    let node = kubectl.read("pod/box", "{.spec.nodeName}").await?;
    let table = kubectl.ok("get nodes -o wide").await?;
    has(
        &table,
        &[
            "NAME ",
            "STATUS",
            "ROLES",
            "AGE",
            "VERSION",
            "INTERNAL-IP",
            "EXTERNAL-IP",
            "OS-IMAGE",
            "KERNEL-VERSION",
            "CONTAINER-RUNTIME",
        ],
    )?;
    has(&table, &[&node, "Ready", "v1."])?;
    let text = kubectl.ok(&format!("describe node {node}")).await?;
    has(
        &text,
        &[
            &format!("Name:               {node}\n"),
            "Roles: ",
            "kubernetes.io/hostname=",
            "kubernetes.io/os=linux",
            "Unschedulable:      false\n",
            "Lease:\n",
            "  RenewTime:       ",
            "Conditions:\n",
            "  MemoryPressure   False",
            "  Ready            True ",
            "KubeletReady",
            "Addresses:\n  InternalIP:",
            "Capacity:\n",
            "Allocatable:\n",
            "System Info:\n  Machine ID: ",
            "  Kernel Version:  ",
            "  Operating System:           linux\n",
            "  Kubelet Version: ",
            "Non-terminated Pods: ",
            "Allocated resources:\n",
        ],
    )?;
    ensure!(
        text.lines().any(|line| line.contains(kubectl.namespace()) && line.contains("box")),
        "the pod is not listed:\n{text}"
    );
    Ok(())
}

pub(crate) async fn a_claim_is_described_with_who_uses_it(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    kubectl.apply(&claim("data")).await?;
    kubectl
        .apply(
            &(pod("box", IDLE)
                .replace("    command:", "    volumeMounts: [{name: data, mountPath: /data}]\n    command:")
                + "  volumes:\n  - {name: data, persistentVolumeClaim: {claimName: data}}\n"),
        )
        .await?;
    kubectl.ok("wait --for=jsonpath={.status.phase}=Bound pvc/data").await?;
    kubectl.ok("wait --for=condition=Ready pod/box").await?;
    let table = kubectl.ok("get pvc data -o wide").await?;
    has(
        &table,
        &[
            "NAME   STATUS   VOLUME",
            "CAPACITY   ACCESS MODES   STORAGECLASS",
            "VOLUMEATTRIBUTESCLASS   AGE",
            "VOLUMEMODE",
            "data   Bound    ",
            "64Mi       RWO",
            "Filesystem",
        ],
    )?;
    let volume = kubectl.read("pvc/data", "{.spec.volumeName}").await?;
    let text = kubectl.ok("describe pvc data").await?;
    has(
        &text,
        &[
            "Name:          data\n",
            "Status:        Bound\n",
            &format!("Volume:        {volume}\n"),
            "Annotations:   pv.kubernetes.io/bind-completed: yes\n",
            "Finalizers:    [kubernetes.io/pvc-protection]\n",
            "Capacity:      64Mi\n",
            "Access Modes:  RWO\n",
            "VolumeMode:    Filesystem\n",
            "Used By:       box\n",
            "Events:\n",
        ],
    )?;
    let text = kubectl.ok(&format!("describe pv {volume}")).await?;
    has(
        &text,
        &[
            "Status:            Bound\n",
            &format!("Claim:             {}/data\n", kubectl.namespace()),
            "Reclaim Policy:    Delete\n",
            "Capacity:          64Mi\n",
            "Source:\n    Type:",
        ],
    )?;
    has(&kubectl.ok("get pv").await?, &[&volume, "Delete           Bound", &format!("{}/data", kubectl.namespace())])?;
    has(
        &kubectl.ok("describe storageclass").await?,
        &["IsDefaultClass:        Yes\n", "Provisioner:           ", "VolumeBindingMode:     "],
    )
}

pub(crate) async fn a_snapshot_is_shown_with_what_it_is_of(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    kubectl.apply(&claim("data")).await?;
    kubectl.ok("wait --for=jsonpath={.status.phase}=Bound pvc/data").await?;
    kubectl
        .apply(
            "apiVersion: snapshot.storage.k8s.io/v1\nkind: VolumeSnapshot\nmetadata: {name: cut}\n\
             spec: {source: {persistentVolumeClaimName: data}}\n",
        )
        .await?;
    kubectl.ok("wait --for=jsonpath={.status.readyToUse}=true volumesnapshot/cut").await?;
    let content = kubectl.read("vs/cut", "{.status.boundVolumeSnapshotContentName}").await?;
    let class = kubectl.read("vs/cut", "{.spec.volumeSnapshotClassName}").await?;
    let table = kubectl.ok("get vs").await?;
    let head =
        "NAME READYTOUSE SOURCEPVC SOURCESNAPSHOTCONTENT RESTORESIZE SNAPSHOTCLASS SNAPSHOTCONTENT CREATIONTIME AGE\n";
    has(&table, &[head, "cut true data ", &format!(" 64Mi {class} {content} ")])?;
    let contents = kubectl.ok(&format!("get vsc {content}")).await?;
    has(
        &contents,
        &[
            "READYTOUSE RESTORESIZE DELETIONPOLICY DRIVER VOLUMESNAPSHOTCLASS VOLUMESNAPSHOT VOLUMESNAPSHOTNAMESPACE AGE\n",
        ],
    )?;
    has(&contents, &["true 67108864 Delete ", &format!(" {class} cut {} ", kubectl.namespace())])?;
    has(&kubectl.ok("get vsclass").await?, &["NAME DRIVER DELETIONPOLICY AGE\n", &class, " Delete "])?;
    has(&kubectl.ok("describe vs cut").await?, &["Kind: VolumeSnapshot\n", "Ready To Use: true\n"])
}

pub(crate) async fn a_service_is_described_with_its_endpoints(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    kubectl.apply(&pod("box", IDLE)).await?;
    kubectl.ok("wait --for=condition=Ready pod/box").await?;
    kubectl.ok("expose pod box --name=door --port=80 --target-port=8080").await?;
    let ip = kubectl.read("pod/box", "{.status.podIP}").await?;
    kubectl
        .shows(
            "describe service door",
            &[
                "Name:                     door\n",
                "Selector:                 app=box\n",
                "Type:                     ClusterIP\n",
                "IP Family Policy:         SingleStack\n",
                "IP Families:              IPv4\n",
                "Port:                     <unset>  80/TCP\n",
                "TargetPort:               8080/TCP\n",
                &format!("Endpoints:                {ip}:8080\n"),
                "Session Affinity:         None\n",
                "Internal Traffic Policy:  Cluster\n",
            ],
        )
        .await?;
    let table = kubectl.ok("get service door -o wide").await?;
    has(
        &table,
        &[
            "NAME   TYPE        CLUSTER-IP",
            "EXTERNAL-IP   PORT(S)   AGE",
            "SELECTOR",
            "door   ClusterIP   ",
            "<none>        80/TCP",
            "app=box",
        ],
    )?;
    has(&kubectl.ok("get endpointslices").await?, &["ADDRESSTYPE   PORTS   ENDPOINTS", "IPv4          8080", &ip])?;
    let old = kubectl.run("get endpoints door", None).await?;
    has(&old.stderr, &["Warning: v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice\n"])?;
    has(&old.success()?, &["NAME ENDPOINTS AGE\n", &format!("door {ip}:8080 ")])
}

pub(crate) async fn namespaces_and_small_objects_are_described(ctx: Ctx) -> Result<()> {
    let kubectl = Kubectl::new(&ctx)?;
    let namespace = kubectl.namespace().to_owned();
    let text = kubectl.ok(&format!("describe namespace {namespace}")).await?;
    has(
        &text,
        &[
            &format!("Name:         {namespace}\n"),
            &format!("kubernetes.io/metadata.name={namespace}"),
            "Status:       Active\n",
        ],
    )?;
    kubectl.apply(&config_map("map", &[("a", "1")])).await?;
    has(&kubectl.ok("describe configmap map").await?, &["Data\n====\na:\n----\n1\n", "BinaryData\n====\n"])?;
    kubectl.ok("create secret generic key --from-literal=password=whale").await?;
    has(&kubectl.ok("describe secret key").await?, &["Type:  Opaque\n", "password:  5 bytes\n"])?;
    has(
        &kubectl.ok("describe serviceaccount default").await?,
        &["Name:                default\n", "Image pull secrets:  <none>\n"],
    )?;
    kubectl.ok("create role reader --verb=get --resource=pods").await?;
    has(
        &kubectl.ok("describe role reader").await?,
        &[
            "PolicyRule:\n  Resources  Non-Resource URLs  Resource Names  Verbs\n",
            "  pods       []                 []              [get]\n",
        ],
    )?;

    let boats = Boats::define(&ctx, &kubectl).await?;
    kubectl.apply(&boats.boat("gig", 4)).await?;
    has(
        &kubectl.ok(&format!("describe {} gig", boats.short)).await?,
        &[
            "Name:         gig\n",
            "Kind:         Boat\n",
            "Spec:\n  Captain:  nobody\n  Oars:     4\n",
            "Events:         <none>\n",
        ],
    )?;
    has(
        &kubectl.ok(&format!("describe crd boats.{}", boats.group)).await?,
        &["Kind:         CustomResourceDefinition\n", "Type:                  Established\n"],
    )?;
    assert_eq!(kubectl.fails("describe pod box").await?, "Error from server (NotFound): pods \"box\" not found\n");
    Ok(())
}

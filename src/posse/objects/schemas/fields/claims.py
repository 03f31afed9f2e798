"""Persistent volumes and the claims to them."""

from __future__ import annotations

STRUCTS = """
AzureFilePersistentVolumeSource: readOnly#3:bool secretName#1! secretNamespace#4? shareName#2!
CSIPersistentVolumeSource: controllerExpandSecretRef#9:SecretReference
    controllerPublishSecretRef#6:SecretReference driver#1! fsType#4
    nodeExpandSecretRef#10:SecretReference nodePublishSecretRef#8:SecretReference
    nodeStageSecretRef#7:SecretReference readOnly#3:bool volumeAttributes#5:{string} volumeHandle#2!
CephFSPersistentVolumeSource: monitors#1!:[string] path#2 readOnly#6:bool secretFile#4
    secretRef#5:SecretReference user#3
CinderPersistentVolumeSource: fsType#2 readOnly#3:bool secretRef#4:SecretReference volumeID#1!
FlexPersistentVolumeSource: driver#1! fsType#2 options#5:{string} readOnly#4:bool
    secretRef#3:SecretReference
GlusterfsPersistentVolumeSource: endpoints#1! endpointsNamespace#4? path#2! readOnly#3:bool
ISCSIPersistentVolumeSource: chapAuthDiscovery#8:bool chapAuthSession#11:bool fsType#5
    initiatorName#12? iqn#2! iscsiInterface#4 lun#3!:int portals#7:[string] readOnly#6:bool
    secretRef#10:SecretReference targetPortal#1!
LocalVolumeSource: fsType#2? path#1!
ModifyVolumeStatus: status#2! targetVolumeAttributesClassName#1
PersistentVolume: apiVersion kind metadata#1:ObjectMeta spec#2:PersistentVolumeSpec
    status#3:PersistentVolumeStatus
PersistentVolumeClaim: apiVersion kind metadata#1:ObjectMeta spec#2:PersistentVolumeClaimSpec
    status#3:PersistentVolumeClaimStatus
PersistentVolumeClaimCondition: lastProbeTime#3:time lastTransitionTime#4:time message#6 reason#5
    status#2! type#1!
PersistentVolumeClaimStatus: accessModes#2:[string] allocatedResourceStatuses#7:{string}
    allocatedResources#5:{quantity} capacity#3:{quantity}
    conditions#4:[PersistentVolumeClaimCondition]@type currentVolumeAttributesClassName#8?
    modifyVolumeStatus#9:ModifyVolumeStatus phase#1
PersistentVolumeSpec: accessModes#3:[string]
    awsElasticBlockStore#2.2:AWSElasticBlockStoreVolumeSource azureDisk#2.16:AzureDiskVolumeSource
    azureFile#2.13:AzureFilePersistentVolumeSource capacity#1:{quantity}
    cephfs#2.9:CephFSPersistentVolumeSource cinder#2.8:CinderPersistentVolumeSource
    claimRef#4:ObjectReference csi#2.22:CSIPersistentVolumeSource fc#2.10:FCVolumeSource
    flexVolume#2.12:FlexPersistentVolumeSource flocker#2.11:FlockerVolumeSource
    gcePersistentDisk#2.1:GCEPersistentDiskVolumeSource
    glusterfs#2.4:GlusterfsPersistentVolumeSource hostPath#2.3:HostPathVolumeSource
    iscsi#2.7:ISCSIPersistentVolumeSource local#2.20:LocalVolumeSource mountOptions#7:[string]
    nfs#2.5:NFSVolumeSource nodeAffinity#9:VolumeNodeAffinity persistentVolumeReclaimPolicy#5
    photonPersistentDisk#2.17:PhotonPersistentDiskVolumeSource
    portworxVolume#2.18:PortworxVolumeSource quobyte#2.15:QuobyteVolumeSource
    rbd#2.6:RBDPersistentVolumeSource scaleIO#2.19:ScaleIOPersistentVolumeSource storageClassName#6
    storageos#2.21:StorageOSPersistentVolumeSource volumeAttributesClassName#10? volumeMode#8?
    vsphereVolume#2.14:VsphereVirtualDiskVolumeSource
PersistentVolumeStatus: lastPhaseTransitionTime#4:time message#2 phase#1 reason#3
RBDPersistentVolumeSource: fsType#3 image#2! keyring#6 monitors#1!:[string] pool#4 readOnly#8:bool
    secretRef#7:SecretReference user#5
ScaleIOPersistentVolumeSource: fsType#9 gateway#1! protectionDomain#5 readOnly#10:bool
    secretRef#3!:SecretReference sslEnabled#4:bool storageMode#7 storagePool#6 system#2!
    volumeName#8
SecretReference: name#1 namespace#2
StorageOSPersistentVolumeSource: fsType#3 readOnly#4:bool secretRef#5:ObjectReference volumeName#1
    volumeNamespace#2
VolumeNodeAffinity: required#1:NodeSelector
"""

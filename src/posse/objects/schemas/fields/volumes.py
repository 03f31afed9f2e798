"""Volumes and every source they can have."""

from __future__ import annotations

STRUCTS = """
AWSElasticBlockStoreVolumeSource: fsType#2 partition#3:int readOnly#4:bool volumeID#1!
AzureDiskVolumeSource: cachingMode#3? diskName#1! diskURI#2! fsType#4? kind#6? readOnly#5:bool?
AzureFileVolumeSource: readOnly#3:bool secretName#1! shareName#2!
CSIVolumeSource: driver#1! fsType#3? nodePublishSecretRef#5:LocalObjectReference readOnly#2:bool?
    volumeAttributes#4:{string}
CephFSVolumeSource: monitors#1!:[string] path#2 readOnly#6:bool secretFile#4
    secretRef#5:LocalObjectReference user#3
CinderVolumeSource: fsType#2 readOnly#3:bool secretRef#4:LocalObjectReference volumeID#1!
ClusterTrustBundleProjection: labelSelector#3:LabelSelector name#1? optional#5:bool? path#4!
    signerName#2?
ConfigMapProjection: items#2:[KeyToPath] name#1.1 optional#4:bool?
ConfigMapVolumeSource: defaultMode#3:int? items#2:[KeyToPath] name#1.1 optional#4:bool?
DownwardAPIProjection: items#1:[DownwardAPIVolumeFile]
DownwardAPIVolumeFile: fieldRef#2:ObjectFieldSelector mode#4:int? path#1!
    resourceFieldRef#3:ResourceFieldSelector
DownwardAPIVolumeSource: defaultMode#2:int? items#1:[DownwardAPIVolumeFile]
EmptyDirVolumeSource: medium#1 sizeLimit#2:quantity
EphemeralVolumeSource: volumeClaimTemplate#1:PersistentVolumeClaimTemplate
FCVolumeSource: fsType#3 lun#2:int? readOnly#4:bool targetWWNs#1:[string] wwids#5:[string]
FlexVolumeSource: driver#1! fsType#2 options#5:{string} readOnly#4:bool
    secretRef#3:LocalObjectReference
FlockerVolumeSource: datasetName#1 datasetUUID#2
GCEPersistentDiskVolumeSource: fsType#2 partition#3:int pdName#1! readOnly#4:bool
GitRepoVolumeSource: directory#3 repository#1! revision#2
GlusterfsVolumeSource: endpoints#1! path#2! readOnly#3:bool
HostPathVolumeSource: path#1! type#2?
ISCSIVolumeSource: chapAuthDiscovery#8:bool chapAuthSession#11:bool fsType#5 initiatorName#12?
    iqn#2! iscsiInterface#4 lun#3!:int portals#7:[string] readOnly#6:bool
    secretRef#10:LocalObjectReference targetPortal#1!
ImageVolumeSource: pullPolicy#2 reference#1
KeyToPath: key#1! mode#3:int? path#2!
NFSVolumeSource: path#2! readOnly#3:bool server#1!
PersistentVolumeClaimSpec: accessModes#1:[string] dataSource#7:TypedLocalObjectReference
    dataSourceRef#8:TypedObjectReference resources#2:VolumeResourceRequirements
    selector#4:LabelSelector storageClassName#5? volumeAttributesClassName#9? volumeMode#6?
    volumeName#3
PersistentVolumeClaimTemplate: metadata#1:ObjectMeta spec#2!:PersistentVolumeClaimSpec
PersistentVolumeClaimVolumeSource: claimName#1! readOnly#2:bool
PhotonPersistentDiskVolumeSource: fsType#2 pdID#1!
PodCertificateProjection: certificateChainPath#6 credentialBundlePath#4 keyPath#5 keyType#2!
    maxExpirationSeconds#3:int? signerName#1! userAnnotations#7:{string}
PortworxVolumeSource: fsType#2 readOnly#3:bool volumeID#1!
ProjectedVolumeSource: defaultMode#2:int? sources#1:[VolumeProjection]
QuobyteVolumeSource: group#5 readOnly#3:bool registry#1! tenant#6 user#4 volume#2!
RBDVolumeSource: fsType#3 image#2! keyring#6 monitors#1!:[string] pool#4 readOnly#8:bool
    secretRef#7:LocalObjectReference user#5
ScaleIOVolumeSource: fsType#9 gateway#1! protectionDomain#5 readOnly#10:bool
    secretRef#3!:LocalObjectReference sslEnabled#4:bool storageMode#7 storagePool#6 system#2!
    volumeName#8
SecretProjection: items#2:[KeyToPath] name#1.1 optional#4:bool?
SecretVolumeSource: defaultMode#3:int? items#2:[KeyToPath] optional#4:bool? secretName#1
ServiceAccountTokenProjection: audience#1 expirationSeconds#2:long? path#3!
StorageOSVolumeSource: fsType#3 readOnly#4:bool secretRef#5:LocalObjectReference volumeName#1
    volumeNamespace#2
TypedLocalObjectReference: apiGroup#1? kind#2! name#3!
TypedObjectReference: apiGroup#1? kind#2! name#3! namespace#4?
Volume: awsElasticBlockStore#2.4:AWSElasticBlockStoreVolumeSource
    azureDisk#2.22:AzureDiskVolumeSource azureFile#2.18:AzureFileVolumeSource
    cephfs#2.14:CephFSVolumeSource cinder#2.13:CinderVolumeSource
    configMap#2.19:ConfigMapVolumeSource csi#2.28:CSIVolumeSource
    downwardAPI#2.16:DownwardAPIVolumeSource emptyDir#2.2:EmptyDirVolumeSource
    ephemeral#2.29:EphemeralVolumeSource fc#2.17:FCVolumeSource flexVolume#2.12:FlexVolumeSource
    flocker#2.15:FlockerVolumeSource gcePersistentDisk#2.3:GCEPersistentDiskVolumeSource
    gitRepo#2.5:GitRepoVolumeSource glusterfs#2.9:GlusterfsVolumeSource
    hostPath#2.1:HostPathVolumeSource image#2.30:ImageVolumeSource iscsi#2.8:ISCSIVolumeSource
    name#1! nfs#2.7:NFSVolumeSource persistentVolumeClaim#2.10:PersistentVolumeClaimVolumeSource
    photonPersistentDisk#2.23:PhotonPersistentDiskVolumeSource
    portworxVolume#2.24:PortworxVolumeSource projected#2.26:ProjectedVolumeSource
    quobyte#2.21:QuobyteVolumeSource rbd#2.11:RBDVolumeSource scaleIO#2.25:ScaleIOVolumeSource
    secret#2.6:SecretVolumeSource storageos#2.27:StorageOSVolumeSource
    vsphereVolume#2.20:VsphereVirtualDiskVolumeSource
VolumeProjection: clusterTrustBundle#5:ClusterTrustBundleProjection configMap#3:ConfigMapProjection
    downwardAPI#2:DownwardAPIProjection podCertificate#6:PodCertificateProjection
    secret#1:SecretProjection serviceAccountToken#4:ServiceAccountTokenProjection
VolumeResourceRequirements: limits#1:{quantity} requests#2:{quantity}
VsphereVirtualDiskVolumeSource: fsType#2 storagePolicyID#4 storagePolicyName#3 volumePath#1!
"""

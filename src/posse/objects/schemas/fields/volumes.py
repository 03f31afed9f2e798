"""Volumes and every source they can have."""

from __future__ import annotations

STRUCTS = """
AWSElasticBlockStoreVolumeSource: fsType partition:int readOnly:bool volumeID!
AzureDiskVolumeSource: cachingMode diskName! diskURI! fsType kind readOnly:bool
AzureFileVolumeSource: readOnly:bool secretName! shareName!
CSIVolumeSource: driver! fsType nodePublishSecretRef:LocalObjectReference readOnly:bool
    volumeAttributes:{string}
CephFSVolumeSource: monitors!:[string] path readOnly:bool secretFile
    secretRef:LocalObjectReference user
CinderVolumeSource: fsType readOnly:bool secretRef:LocalObjectReference volumeID!
ClusterTrustBundleProjection: labelSelector:LabelSelector name optional:bool path! signerName
ConfigMapProjection: items:[KeyToPath] name optional:bool
ConfigMapVolumeSource: defaultMode:int items:[KeyToPath] name optional:bool
DownwardAPIProjection: items:[DownwardAPIVolumeFile]
DownwardAPIVolumeFile: fieldRef:ObjectFieldSelector mode:int path!
    resourceFieldRef:ResourceFieldSelector
DownwardAPIVolumeSource: defaultMode:int items:[DownwardAPIVolumeFile]
EmptyDirVolumeSource: medium sizeLimit:quantity
EphemeralVolumeSource: volumeClaimTemplate:PersistentVolumeClaimTemplate
FCVolumeSource: fsType lun:int readOnly:bool targetWWNs:[string] wwids:[string]
FlexVolumeSource: driver! fsType options:{string} readOnly:bool secretRef:LocalObjectReference
FlockerVolumeSource: datasetName datasetUUID
GCEPersistentDiskVolumeSource: fsType partition:int pdName! readOnly:bool
GitRepoVolumeSource: directory repository! revision
GlusterfsVolumeSource: endpoints! path! readOnly:bool
HostPathVolumeSource: path! type
ISCSIVolumeSource: chapAuthDiscovery:bool chapAuthSession:bool fsType initiatorName iqn!
    iscsiInterface lun!:int portals:[string] readOnly:bool secretRef:LocalObjectReference
    targetPortal!
ImageVolumeSource: pullPolicy reference
KeyToPath: key! mode:int path!
NFSVolumeSource: path! readOnly:bool server!
PersistentVolumeClaimSpec: accessModes:[string] dataSource:TypedLocalObjectReference
    dataSourceRef:TypedObjectReference resources:VolumeResourceRequirements selector:LabelSelector
    storageClassName volumeAttributesClassName volumeMode volumeName
PersistentVolumeClaimTemplate: metadata:ObjectMeta spec!:PersistentVolumeClaimSpec
PersistentVolumeClaimVolumeSource: claimName! readOnly:bool
PhotonPersistentDiskVolumeSource: fsType pdID!
PodCertificateProjection: certificateChainPath credentialBundlePath keyPath keyType!
    maxExpirationSeconds:int signerName! userAnnotations:{string}
PortworxVolumeSource: fsType readOnly:bool volumeID!
ProjectedVolumeSource: defaultMode:int sources:[VolumeProjection]
QuobyteVolumeSource: group readOnly:bool registry! tenant user volume!
RBDVolumeSource: fsType image! keyring monitors!:[string] pool readOnly:bool
    secretRef:LocalObjectReference user
ScaleIOVolumeSource: fsType gateway! protectionDomain readOnly:bool
    secretRef!:LocalObjectReference sslEnabled:bool storageMode storagePool system! volumeName
SecretProjection: items:[KeyToPath] name optional:bool
SecretVolumeSource: defaultMode:int items:[KeyToPath] optional:bool secretName
ServiceAccountTokenProjection: audience expirationSeconds:long path!
StorageOSVolumeSource: fsType readOnly:bool secretRef:LocalObjectReference volumeName
    volumeNamespace
TypedLocalObjectReference: apiGroup kind! name!
TypedObjectReference: apiGroup kind! name! namespace
Volume: awsElasticBlockStore:AWSElasticBlockStoreVolumeSource azureDisk:AzureDiskVolumeSource
    azureFile:AzureFileVolumeSource cephfs:CephFSVolumeSource cinder:CinderVolumeSource
    configMap:ConfigMapVolumeSource csi:CSIVolumeSource downwardAPI:DownwardAPIVolumeSource
    emptyDir:EmptyDirVolumeSource ephemeral:EphemeralVolumeSource fc:FCVolumeSource
    flexVolume:FlexVolumeSource flocker:FlockerVolumeSource
    gcePersistentDisk:GCEPersistentDiskVolumeSource gitRepo:GitRepoVolumeSource
    glusterfs:GlusterfsVolumeSource hostPath:HostPathVolumeSource image:ImageVolumeSource
    iscsi:ISCSIVolumeSource name! nfs:NFSVolumeSource
    persistentVolumeClaim:PersistentVolumeClaimVolumeSource
    photonPersistentDisk:PhotonPersistentDiskVolumeSource portworxVolume:PortworxVolumeSource
    projected:ProjectedVolumeSource quobyte:QuobyteVolumeSource rbd:RBDVolumeSource
    scaleIO:ScaleIOVolumeSource secret:SecretVolumeSource storageos:StorageOSVolumeSource
    vsphereVolume:VsphereVirtualDiskVolumeSource
VolumeProjection: clusterTrustBundle:ClusterTrustBundleProjection configMap:ConfigMapProjection
    downwardAPI:DownwardAPIProjection podCertificate:PodCertificateProjection
    secret:SecretProjection serviceAccountToken:ServiceAccountTokenProjection
VolumeResourceRequirements: limits:{quantity} requests:{quantity}
VsphereVirtualDiskVolumeSource: fsType storagePolicyID storagePolicyName volumePath!
"""

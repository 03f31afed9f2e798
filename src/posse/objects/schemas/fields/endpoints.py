"""Where services lead: Endpoints and EndpointSlices."""

from __future__ import annotations

STRUCTS = """
EndpointAddress: hostname#3 ip#1! nodeName#4? targetRef#2:ObjectReference
EndpointConditions: ready#1:bool? serving#2:bool? terminating#3:bool?
EndpointHints: forNodes#2:[ForNode] forZones#1:[ForZone]
EndpointPort: appProtocol#4? name#1 port#2!:int protocol#3
EndpointSlice: addressType#4! apiVersion endpoints#2:[SliceEndpoint] kind metadata#1:ObjectMeta
    ports#3:[SlicePort]
EndpointSubset: addresses#1:[EndpointAddress] notReadyAddresses#2:[EndpointAddress]
    ports#3:[EndpointPort]
Endpoints: apiVersion kind metadata#1:ObjectMeta subsets#2:[EndpointSubset]
ForNode: name#1!
ForZone: name#1!
SliceEndpoint: addresses#1!:[string] conditions#2:EndpointConditions deprecatedTopology#5:{string}
    hints#8:EndpointHints hostname#3? nodeName#6? targetRef#4:ObjectReference zone#7?
SlicePort: appProtocol#4? name#1? port#3:int? protocol#2?
"""

"""CustomResourceDefinitions, down to the schema language itself."""

from __future__ import annotations

STRUCTS = """
CustomResourceColumnDefinition: description format jsonPath! name! priority:int type!
CustomResourceConversion: strategy! webhook:WebhookConversion
CustomResourceDefinition: apiVersion kind metadata:ObjectMeta spec!:CustomResourceDefinitionSpec
    status:CustomResourceDefinitionStatus
CustomResourceDefinitionCondition: lastTransitionTime:time message observedGeneration:long reason
    status! type!
CustomResourceDefinitionNames: categories:[string] kind! listKind plural! shortNames:[string]
    singular
CustomResourceDefinitionSpec: conversion:CustomResourceConversion group!
    names!:CustomResourceDefinitionNames preserveUnknownFields:bool scope!
    versions!:[CustomResourceDefinitionVersion]
CustomResourceDefinitionStatus: acceptedNames:CustomResourceDefinitionNames
    conditions:[CustomResourceDefinitionCondition] observedGeneration:long storedVersions:[string]
CustomResourceDefinitionVersion: additionalPrinterColumns:[CustomResourceColumnDefinition]
    deprecated:bool deprecationWarning name! schema:CustomResourceValidation
    selectableFields:[SelectableField] served!:bool storage!:bool
    subresources:CustomResourceSubresources
CustomResourceSubresourceScale: labelSelectorPath specReplicasPath! statusReplicasPath!
CustomResourceSubresourceStatus:
CustomResourceSubresources: scale:CustomResourceSubresourceScale
    status:CustomResourceSubresourceStatus
CustomResourceValidation: openAPIV3Schema:JSONSchemaProps
ExternalDocumentation: description url
JSONSchemaProps: $ref $schema additionalItems:JSONSchemaPropsOrBool
    additionalProperties:JSONSchemaPropsOrBool allOf:[JSONSchemaProps] anyOf:[JSONSchemaProps]
    default:any definitions:{JSONSchemaProps} dependencies:{any} description enum:[any]
    example:any exclusiveMaximum:bool exclusiveMinimum:bool externalDocs:ExternalDocumentation
    format id items:JSONSchemaProps maxItems:long maxLength:long maxProperties:long maximum:float
    minItems:long minLength:long minProperties:long minimum:float multipleOf:float
    not:JSONSchemaProps nullable:bool oneOf:[JSONSchemaProps] pattern
    patternProperties:{JSONSchemaProps} properties:{JSONSchemaProps} required:[string] title type
    uniqueItems:bool x-kubernetes-embedded-resource:bool x-kubernetes-int-or-string:bool
    x-kubernetes-list-map-keys:[string] x-kubernetes-list-type x-kubernetes-map-type
    x-kubernetes-preserve-unknown-fields:bool x-kubernetes-validations:[ValidationRule]
SelectableField: jsonPath!
ServiceReference: name! namespace! path port:int
ValidationRule: fieldPath message messageExpression optionalOldSelf:bool reason rule!
WebhookClientConfig: caBundle:bytes service:ServiceReference url
WebhookConversion: clientConfig:WebhookClientConfig conversionReviewVersions!:[string]
"""

"""CustomResourceDefinitions, down to the schema language itself."""

from __future__ import annotations

STRUCTS = """
CustomResourceColumnDefinition: description#4 format#3 jsonPath#6! name#1! priority#5:int type#2!
CustomResourceConversion: strategy#1! webhook#2:WebhookConversion
CustomResourceDefinition: apiVersion kind metadata#1:ObjectMeta spec#2!:CustomResourceDefinitionSpec
    status#3:CustomResourceDefinitionStatus
CustomResourceDefinitionCondition: lastTransitionTime#3:time message#5 observedGeneration#6:long
    reason#4 status#2! type#1!
CustomResourceDefinitionNames: categories#6:[string] kind#4! listKind#5 plural#1!
    shortNames#3:[string] singular#2
CustomResourceDefinitionSpec: conversion#9:CustomResourceConversion group#1!
    names#3!:CustomResourceDefinitionNames preserveUnknownFields#10:bool scope#4!
    versions#7!:[CustomResourceDefinitionVersion]
CustomResourceDefinitionStatus: acceptedNames#2:CustomResourceDefinitionNames
    conditions#1:[CustomResourceDefinitionCondition] observedGeneration#4:long
    storedVersions#3:[string]
CustomResourceDefinitionVersion: additionalPrinterColumns#6:[CustomResourceColumnDefinition]
    deprecated#7:bool deprecationWarning#8? name#1! schema#4:CustomResourceValidation
    selectableFields#9:[SelectableField] served#2!:bool storage#3!:bool
    subresources#5:CustomResourceSubresources
CustomResourceSubresourceScale: labelSelectorPath#3? specReplicasPath#1! statusReplicasPath#2!
CustomResourceSubresourceStatus:
CustomResourceSubresources: scale#2:CustomResourceSubresourceScale
    status#1:CustomResourceSubresourceStatus
CustomResourceValidation: openAPIV3Schema#1:JSONSchemaProps
ExternalDocumentation: description#1 url#2
JSONSchemaProps: $ref#3? $schema#2 additionalItems#33:JSONSchemaPropsOrBool
    additionalProperties#30:JSONSchemaPropsOrBool allOf#25:[JSONSchemaProps]
    anyOf#27:[JSONSchemaProps] default#8:any definitions#34:{JSONSchemaProps} dependencies#32:{any}
    description#4 enum#20:[any] example#36:any exclusiveMaximum#10:bool exclusiveMinimum#12:bool
    externalDocs#35:ExternalDocumentation format#6 id#1 items#24:JSONSchemaProps maxItems#16:long?
    maxLength#13:long? maxProperties#21:long? maximum#9:float? minItems#17:long? minLength#14:long?
    minProperties#22:long? minimum#11:float? multipleOf#19:float? not#28:JSONSchemaProps
    nullable#37:bool oneOf#26:[JSONSchemaProps] pattern#15 patternProperties#31:{JSONSchemaProps}
    properties#29:{JSONSchemaProps} required#23:[string] title#7 type#5 uniqueItems#18:bool
    x-kubernetes-embedded-resource#39:bool x-kubernetes-int-or-string#40:bool
    x-kubernetes-list-map-keys#41:[string] x-kubernetes-list-type#42? x-kubernetes-map-type#43?
    x-kubernetes-preserve-unknown-fields#38:bool? x-kubernetes-validations#44:[ValidationRule]
SelectableField: jsonPath#1!
ServiceReference: name#2! namespace#1! path#3? port#4:int?
ValidationRule: fieldPath#5 message#2 messageExpression#3 optionalOldSelf#6:bool? reason#4? rule#1!
WebhookClientConfig: caBundle#2:bytes service#1:ServiceReference url#3?
WebhookConversion: clientConfig#2:WebhookClientConfig conversionReviewVersions#3!:[string]
"""

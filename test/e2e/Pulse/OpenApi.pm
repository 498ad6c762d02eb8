# A description of an HTTP API: whether it holds together, and whether an answer is one that it has.
# Of JSON Schema it knows what our description uses, and complains of any other word.
package Pulse::OpenApi;

use strict;
use warnings FATAL => 'all';

use Carp qw(croak);
use JSON::PP ();

my %known = map { $_ => 1 } qw($ref type properties required additionalProperties items enum pattern
  format description minimum maximum maxLength);

sub new {
    my ($class, $document) = @_;
    my $self = bless { document => $document }, $class;
    croak 'no OpenAPI 3.1' if $document->{openapi} !~ /^3\.1\.\d+$/;
    croak 'no title or version' if !$document->{info}{title} || !$document->{info}{version};
    my %ids;
    for my $path (sort keys %{ $document->{paths} }) {
        for my $method (sort keys %{ $document->{paths}{$path} }) {
            my $operation = $document->{paths}{$path}{$method};
            my $id = $operation->{operationId} // '';
            croak "$method $path: no name of its own" if $id eq '' || $ids{$id}++;
            $self->_check_operation("$method $path", $path, $operation);
        }
    }
    $self->_check_schema($_) for values %{ $document->{components}{schemas} };
    return $self;
}

sub _check_operation {
    my ($self, $name, $path, $operation) = @_;
    my %in_path = map { $_ => 1 } $path =~ /\{(\w+)\}/g;
    for my $parameter (@{ $operation->{parameters} // [] }) {
        $self->_check_schema($parameter->{schema});
        next if $parameter->{in} ne 'path';
        croak "$name: parameter $parameter->{name}" if !delete $in_path{ $parameter->{name} };
    }
    croak "$name: parameters that are not described" if %in_path;
    my $body = $operation->{requestBody};
    $self->_check_schema($body->{content}{'application/json'}{schema}) if $body;
    croak "$name: no answers" if !%{ $operation->{responses} // {} };
    for my $response (map { $self->_resolve($_) } values %{ $operation->{responses} }) {
        croak "$name: an answer without a description" if !$response->{description};
        $self->_check_schema($_->{schema}) for values %{ $response->{content} // {} };
    }
    return;
}

sub _resolve {
    my ($self, $value) = @_;
    my $place = $value->{'$ref'} // return $value;
    my $found = $self->{document};
    $found = $found->{$_} // croak "$place leads nowhere" for split m{/}, substr $place, 2;
    return $self->_resolve($found);
}

sub _check_schema {
    my ($self, $schema) = @_;
    my @unknown = grep { !$known{$_} } keys %{$schema};
    croak "words that nothing here knows: @unknown" if @unknown;
    $self->_resolve($schema);
    $self->_check_schema($_) for values %{ $schema->{properties} // {} };
    $self->_check_schema($schema->{items}) if $schema->{items};
    for my $name (@{ $schema->{required} // [] }) {
        croak "$name is required and not described" if !$schema->{properties}{$name};
    }
    return;
}

# Dies unless the answer is one that is described, for a path that is.
sub check {
    my ($self, $method, $path, $answer) = @_;
    $path =~ s/\?.*//s;
    my ($pattern) = grep { (my $regex = $_) =~ s/\{\w+\}/[^\/]+/g; $path =~ /\A$regex\z/ }
      sort keys %{ $self->{document}{paths} };
    my $operation = $pattern ? $self->{document}{paths}{$pattern}{ lc $method } : undef;
    my $type = ($answer->{headers}{'content-type'} // '') =~ s/;.*//sr;
    if (!$operation) {
        croak "$method $path: $answer->{status}, no problem document"
          if $type ne 'application/problem+json'
          || $answer->{status} !~ /^(?:40[0145]|413|421|503)$/;
        return;
    }
    my $response = $operation->{responses}{ $answer->{status} }
      // croak "$method $path: $answer->{status} is not described: $answer->{body}";
    my $content = $self->_resolve($response)->{content};
    if (!$content) {
        croak "$method $path: a body that is not described" if $answer->{body} ne '';
        return;
    }
    my $described = $content->{$type} // croak "$method $path: '$type' is not described";
    $self->_check_value($described->{schema}, $answer->{json}, "$method $path")
      if $type =~ /json/;
    return;
}

sub _type_of {
    my ($value) = @_;
    return 'null' if !defined $value;
    return 'boolean' if JSON::PP::is_bool($value);
    return { HASH => 'object', ARRAY => 'array' }->{ ref $value } if ref $value;
    return 'string' if JSON::PP->new->allow_nonref->encode($value) =~ /^"/;
    return $value =~ /^-?\d+$/ ? 'integer' : 'number';
}

sub _check_value {
    my ($self, $schema, $value, $at) = @_;
    $schema = $self->_resolve($schema);
    my $type = _type_of($value);
    if (my $wanted = $schema->{type}) {
        my %fits = map { $_ => 1 } ref $wanted ? @{$wanted} : $wanted;
        $fits{integer} = 1 if $fits{number};
        croak "$at: $type" if !$fits{$type};
    }
    croak "$at: '$value'"
      if $type eq 'string' && $schema->{pattern} && $value !~ /$schema->{pattern}/;
    if (my $values = $schema->{enum}) {
        my @equal = grep { ($_ // 'null') eq ($value // 'null') } @{$values};
        croak "$at: not one of the values" if !@equal;
    }
    if ($type eq 'array' && $schema->{items}) {
        $self->_check_value($schema->{items}, $value->[$_], "$at [$_]") for 0 .. $#{$value};
    }
    return if $type ne 'object';
    for my $name (@{ $schema->{required} // [] }) {
        croak "$at: no $name" if !exists $value->{$name};
    }
    for my $name (sort keys %{$value}) {
        my $property = $schema->{properties}{$name};
        if ($property) {
            $self->_check_value($property, $value->{$name}, "$at $name");
        } elsif (exists $schema->{additionalProperties}) {
            croak "$at: $name is not described";
        }
    }
    return;
}

1;
